// Synchronization of ranks of which some may die meanwhile. It uses messages, because a collective operation returns different results to
// its members after a death.

#include "daemon.h"
#include "player.h"

namespace starling::simulation {

namespace {

constexpr int kMeetingTag = 100'000;

}  // namespace

// Returns when all living ranks have called it. The result has the `word` that each rank passed, by rank of the communicator; -1: the rank
// is dead.
std::vector<int> Player::meet(const Step& step, int word) {
    const size_t size = script_.communities[step.comm].members.size();
    std::vector<int> words(size, -1);
    std::vector<MPI_Request> requests(2 * size, MPI_REQUEST_NULL);
    std::vector<bool> good(2 * size);
    for (size_t i = 0; i < size; ++i) {
        const auto rank = static_cast<int>(i);
        good[i] =
            ok(mpi_.Irecv(&words[i], 1, MPI_INT, rank, kMeetingTag, comm(step), &requests[i]), "MPI_Irecv", with(step, rank));
        good[size + i] = ok(mpi_.Isend(&word, 1, MPI_INT, rank, kMeetingTag, comm(step), &requests[size + i]), "MPI_Isend",
                            with(step, rank));
    }
    for (size_t i = 0; i < requests.size(); ++i) {
        const Allowed allowed = with(step, static_cast<int>(i % size));
        if (good[i]) good[i] = ok(mpi_.Wait(&requests[i], MPI_STATUS_IGNORE), "the meeting's MPI_Wait", allowed);
    }
    for (size_t i = 0; i < size; ++i)
        if (!good[i]) words[i] = -1;
    return words;
}

/// Kills this rank, like a program that aborts because it cannot continue.
void Player::die() {
    daemons()->kill(process_);
    world()->stay();
}

}  // namespace starling::simulation
