// MPI_Comm_join (MPI 5.0 section 11.10.4): each side sends its address and a context id over the socket; the smaller id is used.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/kept_memory.h"
#include "base/lock.h"
#include "dynamic/dynamic.h"
#include "link/job.h"

namespace starling::dynamic {

namespace {

/// Sends or receives exactly `size` bytes over a blocking or non-blocking socket. The other side may call MPI_Comm_join much later, so
/// other threads may enter the library meanwhile.
int move_all(int fd, char* bytes, size_t size, bool sending) {
    const OutsideLibrary outside;
    while (size > 0) {
        const ssize_t n = sending ? send(fd, bytes, size, MSG_NOSIGNAL) : recv(fd, bytes, size, 0);
        if (n > 0) {
            bytes += n;
            size -= static_cast<size_t>(n);
        } else if (n == 0) {
            return fail(MPI_ERR_OTHER, "the other side closed the socket during MPI_Comm_join");
        } else if (errno == EAGAIN) {
            pollfd wait{fd, static_cast<short>(sending ? POLLOUT : POLLIN), 0};
            poll(&wait, 1, -1);
        } else if (errno != EINTR) {
            return fail(MPI_ERR_OTHER, "the socket of MPI_Comm_join failed: %s", std::strerror(errno));
        }
    }
    return MPI_SUCCESS;
}

struct Card {
    char magic[8] = {'s', 't', 'a', 'r', 'j', 'o', 'i', '2'};
    job::JobAddress job;
    uint32_t rank = 0;
    uint32_t reserved = 0;
    uint64_t context = 0;
};

/// Connects to the process at the other end. This may fail at one end only.
int connect_roots(const Card& mine, const Card& theirs, comm::Comm*& made) {
    const bool first = mine.context < theirs.context;
    comm::GroupBuilder builder;
    link::Job* job = link::find_job(theirs.job);
    builder.add(link::Process{job, theirs.rank});
    if (const int error = job->map()) return error;
    comm::Comm* const self = comm::self();
    made = comm::make_intercomm(std::min(mine.context, theirs.context), self->local_group().retain(), 0, builder.build(), first,
                                self->errhandler);
    return KeptMemory::is_short() ? fail(MPI_ERR_NO_MEM, "out of memory for an inter-communicator") : MPI_SUCCESS;
}

}  // namespace

int join(int socket, comm::Comm*& made) {
    const link::Process& me = link::self();
    Card mine, theirs;
    mine.job = me.job->address();
    mine.rank = me.rank;
    mine.context = comm::new_context();
    if (const int error = move_all(socket, reinterpret_cast<char*>(&mine), sizeof mine, true)) return error;
    if (const int error = move_all(socket, reinterpret_cast<char*>(&theirs), sizeof theirs, false)) return error;
    if (std::memcmp(theirs.magic, mine.magic, sizeof mine.magic) != 0)
        return fail(MPI_ERR_OTHER,
                    "the other end of the socket sent something other than Starling's MPI_Comm_join; both "
                    "processes must call it with one version of Starling");
    if (theirs.job == mine.job && theirs.rank == mine.rank)
        return fail(MPI_ERR_COMM,
                    "the other end of the socket of MPI_Comm_join is this process itself; pass a socket to another process");
    if (const int error = comm::check_context(std::min(mine.context, theirs.context))) return error;
    int32_t error = connect_roots(mine, theirs, made), of_other = MPI_SUCCESS;
    const std::string text(error ? failure_text() : std::string_view());
    int lost = move_all(socket, reinterpret_cast<char*>(&error), sizeof error, true);
    if (!lost) lost = move_all(socket, reinterpret_cast<char*>(&of_other), sizeof of_other, false);
    if (!error && !lost && !of_other) return MPI_SUCCESS;
    if (made) made->release();
    made = nullptr;
    if (error) return fail(error, "%s", text.c_str());
    return lost
               ? lost
               : fail(MPI_ERR_OTHER, "the process at the other end of the socket failed; the error of its call has the reason");
}

}  // namespace starling::dynamic
