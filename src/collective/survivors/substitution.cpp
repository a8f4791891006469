#include "collective/survivors/substitution.h"

#include <new>
#include <vector>

#include "base/error.h"
#include "collective/channel_exchange.h"
#include "collective/collective.h"
#include "collective/communicator/creation.h"
#include "collective/core/buffers.h"
#include "collective/survivors/agreements.h"
#include "mpi-ext.h"

namespace starling::collective {

using comm::Comm;

namespace {

/// The data that each member sends to all others. Only the context id of the first member is used.
struct RankClaim {
    int32_t rank;
    int32_t unused;
    uint64_t context;
};

Task exchange_claims(View v, int rank, std::vector<RankClaim>& claims) {
    claims.resize(static_cast<size_t>(v.n));
    const RankClaim mine{rank, 0, v.me == 0 ? comm::new_context() : 0};
    const Blocks blocks(claims.data(), sizeof(RankClaim), byte_type());
    if (const int error = co_await allgather(v, &mine, sizeof(RankClaim), byte_type(), blocks)) co_return error;
    co_return comm::check_context(claims[0].context);
}

/// Returns the members, by their numbers in the collective match context, in the order of their new ranks; empty if two survivors claim a
/// rank, or one claims a rank that does not exist.
std::vector<int> members_by_rank(const std::vector<RankClaim>& claims) {
    constexpr int kFree = -1;
    std::vector<int> members(claims.size(), kFree);
    for (size_t i = 0; i < claims.size(); ++i) {
        const int rank = claims[i].rank;
        if (rank == kSubstitute) continue;
        if (rank < 0 || static_cast<size_t>(rank) >= members.size() || members[static_cast<size_t>(rank)] != kFree) return {};
        members[static_cast<size_t>(rank)] = static_cast<int>(i);
    }
    size_t place = 0;
    for (size_t i = 0; i < claims.size(); ++i) {
        if (claims[i].rank != kSubstitute) continue;
        while (members[place] != kFree) ++place;
        members[place] = static_cast<int>(i);
    }
    return members;
}

int make_ordered(const Comm& inter, const std::vector<RankClaim>& claims, Comm*& made) {
    const std::vector<int> members = members_by_rank(claims);
    if (members.empty())
        return fail(MPI_ERR_INTERN, "the ranks of the survivors are malformed; use one version of Starling in all processes");
    try {
        comm::GroupBuilder builder;
        for (const int member : members) builder.add(inter.collective.roster().at(member));
        comm::Group* const group = builder.build();
        made = make_intracomm(claims[0].context, group, group->my_rank(), inter.errhandler);
    } catch (const std::bad_alloc&) {
        return fail(MPI_ERR_NO_MEM, "no memory for a communicator of %zu processes", members.size());
    }
    return MPI_SUCCESS;
}

int why_failed() { return fail(MPIX_ERR_PROC_FAILED, "a process has died during the call; the survivors can call it again"); }

/// Returns whether an error is the effect of a death. An error of this kind may come from a member that has learned of the death earlier.
bool is_loss(int error) { return error == MPIX_ERR_PROC_FAILED || error == MPI_ERR_PROC_ABORTED || error == MPIX_ERR_REVOKED; }

}  // namespace

Task agree_in_spite_of_failures(Comm& comm, int error) {
    if (is_loss(error)) {
        withdraw(comm);
        co_return why_failed();
    }
    const ErrorHere mine(error);
    int all_succeeded = error == MPI_SUCCESS;
    if (co_await agree_among_living(comm, all_succeeded)) co_return why_failed();
    if (all_succeeded) co_return MPI_SUCCESS;
    co_return mine.or_else(
        fail(MPI_ERR_OTHER, "another process could not do its part of the call; its error text has the reason"));
}

Task join_substitutes(Comm& inter, int rank, Comm*& result, int error_here) {
    const ErrorHere mine(error_here);
    Exchange& exchange = exchange_of(inter);
    const View all = View::all(exchange);
    exchange.last_was_own();
    std::vector<RankClaim> claims;
    int error = mine.or_else(co_await exchange_claims(all, rank, claims));
    Comm* made = nullptr;
    if (!error) error = make_ordered(inter, claims, made);
    error = co_await agree_in_spite_of_failures(inter, error);
    if (error && made) made->release();
    if (!error) result = made;
    co_return error;
}

}  // namespace starling::collective
