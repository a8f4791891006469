#include "mpi/file/file_failures.h"

#include "comm/failures.h"
#include "file/revocation.h"
#include "mpi/file/file_check.h"

namespace starling::mpi {

int File_revoke(MPI_File fh) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    file::revoke(*f);
    return MPI_SUCCESS;
}

int File_is_revoked(MPI_File fh, int* flag) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    if (!flag) return null_argument(*f, "flag");
    *flag = comm::poll_revocation(*f->comm);
    return MPI_SUCCESS;
}

int File_get_failed(MPI_File fh, MPI_Group* failedgrp) {
    Lock lock;
    File* f = file::from_handle(fh);
    if (!f) return bad_file(fh);
    if (!failedgrp) return null_argument(*f, "failedgrp");
    *failedgrp = comm::add_handle(comm::poll_failures(*f->comm));
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
