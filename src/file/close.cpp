// Closes files on all processes that have opened them, also after some of these have died.
#include <algorithm>

#include "base/error.h"
#include "collective/agreement.h"
#include "collective/collective_request.h"
#include "collective/communicator/creation.h"
#include "collective/survivors/agreements.h"
#include "comm/failures.h"
#include "file/file.h"
#include "file/file_table.h"
#include "file/revocation.h"
#include "file/shared_pointer.h"
#include "file/system_call.h"
#include "file/two_phase_buffers.h"
#include "link/job.h"

namespace starling::file {

namespace {

/// Makes the living members agree on the bitwise AND of their flags. Returns an error, the same on all, if a member has died.
int agree_alive(File& file, int& flag) { return collective::run(collective::agree_among_living(*file.comm, flag)); }

/// Returns whether every living member has passed no error; `error` becomes the result for this member.
///
/// Where members may die, only agreements of the living are safe: an earlier call on the file may have failed on some members only, and
/// then these have made fewer collective operations than the others, whose messages would match wrong receives.
bool may_close(File& file, int& error) {
    if (!file.survives) {
        error = agree_on(file, {}, error, "close");
        return error == MPI_SUCCESS;
    }
    const collective::ErrorHere here(error);
    int all_may = error ? 0 : 1;
    const int dead = agree_alive(file, all_may);
    if (all_may)
        error = dead;
    else
        error = here.or_else(
            fail(MPI_ERR_OTHER, "operations on the file are in progress on another rank; complete them before MPI_File_close"));
    return all_may;
}

/// Returns the result of closing on all members, of which this one has got `error`.
int agree_on_closing(File& file, int error) {
    if (!file.survives) return collective::agree(*file.comm, error, "close of the file");
    const collective::ErrorHere here(error);
    int all_closed = error ? 0 : 1;
    const int dead = agree_alive(file, all_closed);
    if (error || all_closed) return here.or_else(dead);
    return fail(MPI_ERR_IO, "another rank could not close the file; its error text has the reason");
}

int close_here(File& file) {
    const int failed = system_call([&] { return file.system->close(); });
    return failed ? fail_of(failed, "close", file.name) : MPI_SUCCESS;
}

int remove_here(const File& file) {
    const int failed = system_call([&] { return remove_file(file.name); });
    return failed ? fail_of(failed, "delete", file.name) : MPI_SUCCESS;
}

/// Returns the lowest rank of the members that have not died, as far as this process knows, and whether another one has.
int lowest_living(const File& file, bool& deaths) {
    int lowest = file.comm->rank;
    deaths = false;
    for (int rank = file.comm->size - 1; rank >= 0; --rank) {
        if (link::has_ended(file.comm->local_group().at(rank)))
            deaths = true;
        else
            lowest = std::min(lowest, rank);
    }
    return lowest;
}

/// Removes the file on the lowest living member. If that one dies meanwhile, the next one does it.
int remove_alive(File& file) {
    constexpr int kNotRemoved = ~0;
    int mine = MPI_SUCCESS, result = ~0;
    for (result = kNotRemoved; result == kNotRemoved;) {
        bool deaths = false;
        if (lowest_living(file, deaths) == file.comm->rank) {
            result = mine = remove_here(file);
            if (deaths && mine == MPI_ERR_NO_SUCH_FILE)
                result = mine = MPI_SUCCESS;  // a member that has died since may have removed it
        }
        const collective::ErrorHere here(mine);
        agree_alive(file, result);
        here.or_else(MPI_SUCCESS);
    }
    if (mine || result == MPI_SUCCESS) return mine;
    return fail(result, "the lowest living rank could not delete the file; its error text has the reason");
}

/// Removes the file on rank 0. No member uses it any more.
int remove_at_first(File& file) {
    const int failed = file.comm->rank == 0 ? remove_here(file) : MPI_SUCCESS;
    return collective::agree(*file.comm, failed, "removal of the file");
}

/// Closes a revoked file here, where no member dies. Other members may still use its shared memory, since they do not know of the revocation
/// yet, so this memory is never freed.
int close_alone(File& file) {
    const int failed = close_here(file);
    const collective::ErrorHere here(failed);
    file.shared->is_kept = true;
    if (file.buffers) file.buffers->leave_memory();
    comm::announce_revocation(*file.comm);
    const bool removes = file.comm->rank == 0 && file.amode & MPI_MODE_DELETE_ON_CLOSE;
    const collective::ErrorHere result(here.or_else(removes ? remove_here(file) : MPI_SUCCESS));
    destroy(file);
    return result.or_else(MPI_SUCCESS);
}

/// Returns the result of closing a file: a revoked one is closed like any other.
int result_of_closing(const File& file, int error) {
    return is_revoked(file) && (error == MPIX_ERR_REVOKED || is_death(error)) ? MPI_SUCCESS : error;
}

}  // namespace

int close(File& file, int error, bool& closed) {
    const bool is_idle = error == MPI_SUCCESS;
    closed = may_close(file, error);
    if (error == MPIX_ERR_REVOKED) revoke(file);  // a member has learned of it earlier
    if (is_revoked(file) && !file.survives) {
        closed = is_idle;
        return closed ? close_alone(file) : error;
    }
    if (!closed) return error;
    const collective::ErrorHere death(error);
    // No member uses the shared pointer any more once all have called this function.
    error = death.or_else(agree_on_closing(file, close_here(file)));
    if (file.amode & MPI_MODE_DELETE_ON_CLOSE) {
        const collective::ErrorHere first(error);
        const int failed = file.survives ? remove_alive(file) : remove_at_first(file);
        error = first.or_else(failed);
    }
    const collective::ErrorHere result(result_of_closing(file, error));
    destroy(file);
    return result.or_else(MPI_SUCCESS);
}

}  // namespace starling::file
