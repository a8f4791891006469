// Symbols that MPICH's mpi.h declares and the standard does not have.
#include "compat/convert.h"
#include "compat/entry.h"

#define EXPORTED [[gnu::visibility("default")]] extern

extern "C" {

EXPORTED int* const MPI_UNWEIGHTED_ __asm__("MPI_UNWEIGHTED");
int* const MPI_UNWEIGHTED_ = reinterpret_cast<int*>(starling::compat::abi::kUnweighted);
EXPORTED int* const MPI_WEIGHTS_EMPTY_ __asm__("MPI_WEIGHTS_EMPTY");
int* const MPI_WEIGHTS_EMPTY_ = reinterpret_cast<int*>(starling::compat::abi::kWeightsEmpty);
EXPORTED void* const MPI_T_PVAR_ALL_HANDLES_ __asm__("MPI_T_PVAR_ALL_HANDLES");
void* const MPI_T_PVAR_ALL_HANDLES_ = reinterpret_cast<void*>(starling::compat::abi::kAllPvars);
EXPORTED int* MPI_F_STATUS_IGNORE_ __asm__("MPI_F_STATUS_IGNORE");
int* MPI_F_STATUS_IGNORE_ = reinterpret_cast<int*>(starling::compat::abi::kStatusIgnore);
EXPORTED int* MPI_F_STATUSES_IGNORE_ __asm__("MPI_F_STATUSES_IGNORE");
int* MPI_F_STATUSES_IGNORE_ = reinterpret_cast<int*>(starling::compat::abi::kStatusIgnore);

/// Implements MPI_DUP_FN, MPI_COMM_DUP_FN, MPI_TYPE_DUP_FN and MPI_WIN_DUP_FN.
[[gnu::visibility("default")]] int MPIR_Dup_fn(int, int, void*, void* value, void* copy, int* flag) {
    *static_cast<void**>(copy) = value;
    *flag = 1;
    return MPI_SUCCESS;
}

}  // extern "C"

namespace starling::compat {

extern "C" {

COMPAT_ENTRY(int, File_c2f, (abi::File file)) { return library.File_toint(in<MPI_File>(file)); }
COMPAT_ENTRY(abi::File, File_f2c, (int file)) { return out(library.File_fromint(file)); }

}  // extern "C"

}  // namespace starling::compat
