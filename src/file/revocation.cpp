#include "file/revocation.h"

#include "base/error.h"
#include "comm/failures.h"
#include "file/shared_pointer.h"
#include "mpi-ext.h"

namespace starling::file {

namespace {

void end_accesses(comm::Comm& comm) {
    File* const file = file_of(comm.context());
    if (!file || !file->shared) return;
    why_revoked();
    rma::end_accesses(file->shared->target, MPIX_ERR_REVOKED);
}

}  // namespace

void revoke(File& file) { comm::revoke(*file.comm); }

int why_revoked() {
    return fail(MPIX_ERR_REVOKED,
                "the file is revoked: close it, and open it again on a communicator of the living members (MPIX_Comm_shrink)");
}

void end_accesses_at_revocation(File& file) { file.comm->on_revoked = end_accesses; }

}  // namespace starling::file
