#include "mpi/environment/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/clock.h"
#include "base/error.h"
#include "comm/info.h"
#include "mpi/common/check.h"
#include "rma/memory.h"

namespace starling::mpi {

namespace {

size_t alignment(MPI_Info handle) {
    comm::Info info;
    comm::read_info(handle, info);
    return comm::minimum_alignment(info);
}

}  // namespace

double Wtime() { return static_cast<double>(now_ns()) * 1e-9; }

double Wtick() {
    timespec resolution;
    clock_getres(CLOCK_MONOTONIC, &resolution);
    return static_cast<double>(resolution.tv_sec) + static_cast<double>(resolution.tv_nsec) * 1e-9;
}

int Get_processor_name(char* name, int* resultlen) {
    if (!name) return null_argument(nullptr, "name");
    if (!resultlen) return null_argument(nullptr, "resultlen");
    if (gethostname(name, MPI_MAX_PROCESSOR_NAME) != 0) std::strcpy(name, "localhost");
    name[MPI_MAX_PROCESSOR_NAME - 1] = '\0';
    *resultlen = static_cast<int>(std::strlen(name));
    return MPI_SUCCESS;
}

int Alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr) {
    Lock lock;
    if (!baseptr) return null_argument(nullptr, "baseptr");
    if (size < 0) return raise(nullptr, fail(MPI_ERR_ARG, "the size %lld is negative", static_cast<long long>(size)));
    void* memory = rma::allocate(size > 0 ? static_cast<uint64_t>(size) : 1, alignment(info));
    if (!memory && posix_memalign(&memory, alignment(info), size > 0 ? static_cast<size_t>(size) : 1) != 0)
        return raise(nullptr, fail(MPI_ERR_NO_MEM, "out of memory: cannot allocate %lld bytes", static_cast<long long>(size)));
    std::memcpy(baseptr, &memory, sizeof memory);
    return MPI_SUCCESS;
}

int Free_mem(void* base) {
    Lock lock;
    if (!rma::free(base)) std::free(base);
    return MPI_SUCCESS;
}

MPI_Aint Aint_add(MPI_Aint base, MPI_Aint disp) {
    return static_cast<MPI_Aint>(static_cast<uintptr_t>(base) + static_cast<uintptr_t>(disp));
}

MPI_Aint Aint_diff(MPI_Aint addr1, MPI_Aint addr2) {
    return static_cast<MPI_Aint>(static_cast<uintptr_t>(addr1) - static_cast<uintptr_t>(addr2));
}

int Get_hw_resource_info(MPI_Info* hw_info) {
    if (!hw_info) return null_argument(nullptr, "hw_info");
    *hw_info = comm::to_handle(comm::make_info());
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
