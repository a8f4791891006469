#include "mpi/completion/status.h"

#include "base/error.h"
#include "mpi/common/check.h"

namespace starling::mpi {

namespace {

int get(const MPI_Status* status, int MPI_Status::*field, int* value, const char* name) {
    if (!status) return null_argument(nullptr, "status");
    if (!value) return null_argument(nullptr, name);
    *value = status->*field;
    return MPI_SUCCESS;
}

int set(MPI_Status* status, int MPI_Status::*field, int value) {
    if (!status) return null_argument(nullptr, "status");
    status->*field = value;
    return MPI_SUCCESS;
}

}  // namespace

int Status_get_source(const MPI_Status* status, int* source) { return get(status, &MPI_Status::MPI_SOURCE, source, "source"); }

int Status_get_tag(const MPI_Status* status, int* tag) { return get(status, &MPI_Status::MPI_TAG, tag, "tag"); }

int Status_get_error(const MPI_Status* status, int* error) { return get(status, &MPI_Status::MPI_ERROR, error, "error"); }

int Status_set_source(MPI_Status* status, int source) { return set(status, &MPI_Status::MPI_SOURCE, source); }

int Status_set_tag(MPI_Status* status, int tag) { return set(status, &MPI_Status::MPI_TAG, tag); }

int Status_set_error(MPI_Status* status, int error) { return set(status, &MPI_Status::MPI_ERROR, error); }

}  // namespace starling::mpi
