#include "mpi/toint.h"

#include "mpi/handles.h"

namespace starling::mpi {

namespace {

// Only predefined handles exist; every other number is none.
template <class Handle>
Handle predefined(int value, Handle null) {
    if (value < 0 || value >= kFirstHandleInt) return null;
    return reinterpret_cast<Handle>(static_cast<uintptr_t>(value));
}

template <class Handle>
int number(Handle handle) {
    const auto word = reinterpret_cast<uintptr_t>(handle);
    return word < kFirstHandleInt ? static_cast<int>(word) : 0;
}

}  // namespace

int Win_toint(MPI_Win win) {
    return number(win);
}
MPI_Win Win_fromint(int win) {
    return predefined(win, MPI_WIN_NULL);
}
int File_toint(MPI_File file) {
    return number(file);
}
MPI_File File_fromint(int file) {
    return predefined(file, MPI_FILE_NULL);
}

}  // namespace starling::mpi
