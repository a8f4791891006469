#include "collective/communicator/creation.h"

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "base/error.h"
#include "collective/agreement.h"
#include "collective/channel_exchange.h"
#include "collective/collective.h"
#include "collective/core/buffers.h"

namespace starling::collective {

using comm::Comm;

namespace {

// The data that every participant of a split sends to all others. Only participant 0's context id is used. Groups created by one call are
// disjoint, so they may share the context id.
struct SplitRequest {
    int32_t color;
    int32_t key;
    uint64_t context;
};

Task exchange_claims(View v, int color, int key, std::vector<SplitRequest>& claims) {
    claims.resize(static_cast<size_t>(v.n));
    const SplitRequest mine{color, key, v.me == 0 ? comm::new_context() : 0};
    const Blocks blocks(claims.data(), sizeof(SplitRequest), byte_type());
    if (const int error = co_await allgather(v, &mine, sizeof(SplitRequest), byte_type(), blocks)) co_return error;
    co_return comm::check_context(claims[0].context);
}

// Returns the ranks, counted from `base`, of the participants in [base, base + size) that have this color, ordered by key, then by number.
std::vector<int> select_ranks(const std::vector<SplitRequest>& claims, int base, int size, int color) {
    std::vector<int> ranks;
    for (int i = 0; i < size; ++i)
        if (claims[static_cast<size_t>(base + i)].color == color) ranks.push_back(i);
    std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) {
        return claims[static_cast<size_t>(base + a)].key < claims[static_cast<size_t>(base + b)].key;
    });
    return ranks;
}

// Creates the communicator of the participants of comm's exchange with this `color`; null if a side has no such participant.
Comm* make_selected(Comm& comm, const Exchange& exchange, const std::vector<SplitRequest>& claims, int color) {
    const std::vector<int> here = select_ranks(claims, exchange.local_base, exchange.local_size, color);
    const auto my_rank = std::find(here.begin(), here.end(), comm.rank) - here.begin();
    if (!comm.is_inter)
        return make_intracomm(claims[0].context, include(comm.local_group(), here), static_cast<int>(my_rank), comm.errhandler);
    const std::vector<int> there = select_ranks(claims, exchange.remote_base, exchange.remote_size, color);
    if (there.empty()) return nullptr;
    return make_intercomm(claims[0].context, include(comm.local_group(), here), static_cast<int>(my_rank),
                          include(comm.remote_group(), there), comm.local_first, comm.errhandler);
}

/// Returns the error that a member begins a creation with: `error_here`, or that the communicator is revoked.
int error_or_revoked(const Comm& comm, int error_here) {
    return error_here == MPI_SUCCESS && comm.collective.revoked() ? message::why_revoked() : error_here;
}

/// The two steps of a creation, each under a tag drawn at its start: other operations may be active on the communicator.
struct Steps {
    View exchange, agreement;
    explicit Steps(Exchange& over) : exchange(View::all(over)), agreement(View::all(over)) { over.last_was_own(); }
};

}  // namespace

Task end_creation(View v, int error, const std::function<Comm*()>& make, Comm*& result) {
    Comm* made = nullptr;
    if (!error) try {
            made = make();
        } catch (const std::bad_alloc&) { error = fail(MPI_ERR_NO_MEM, "no memory for a communicator of %d processes", v.n); }
    error = co_await agree(v, error, "communicator");
    if (error && made) made->release();
    if (!error) result = made;
    co_return error;
}

Task draw_context(View v, uint64_t& context) {
    if (v.me == 0) context = comm::new_context();
    if (const int error = co_await bcast(v, &context, sizeof context, byte_type(), 0)) co_return error;
    co_return comm::check_context(context);
}

Task duplicate(Comm& comm, Comm*& result, int error_here) {
    const ErrorHere mine(error_or_revoked(comm, error_here));
    Steps steps(exchange_of(comm));
    uint64_t context = 0;
    const int error = mine.or_else(co_await draw_context(steps.exchange, context));
    const std::function<Comm*()> make = [&] {
        Comm* made = comm.is_inter ? make_intercomm(context, comm.local_group().retain(), comm.rank,
                                                    comm.remote_group().retain(), comm.local_first, comm.errhandler)
                                   : make_intracomm(context, comm.local_group().retain(), comm.rank, comm.errhandler);
        made->topology = comm.topology;
        return made;
    };
    co_return co_await end_creation(steps.agreement, error, make, result);
}

Task split(Comm& comm, int color, int key, Comm*& result, int error_here) {
    const ErrorHere mine(error_or_revoked(comm, error_here));
    Exchange& exchange = exchange_of(comm);
    Steps steps(exchange);
    std::vector<SplitRequest> claims;
    const int error = mine.or_else(co_await exchange_claims(steps.exchange, color, key, claims));
    const std::function<Comm*()> make = [&] {
        return color == MPI_UNDEFINED ? nullptr : make_selected(comm, exchange, claims, color);
    };
    co_return co_await end_creation(steps.agreement, error, make, result);
}

Task create(Comm& comm, comm::Group& group, Comm*& result, int error_here) {
    const int my_rank = group.my_rank();
    const bool member = my_rank != MPI_UNDEFINED;
    if (comm.is_inter) co_return co_await split(comm, member ? 0 : MPI_UNDEFINED, member ? my_rank : 0, result, error_here);
    const ErrorHere mine(error_or_revoked(comm, error_here));
    Steps steps(exchange_of(comm));
    uint64_t context = 0;
    const int error = mine.or_else(co_await draw_context(steps.exchange, context));
    const std::function<Comm*()> make = [&] {
        return member ? make_intracomm(context, group.retain(), my_rank, comm.errhandler) : nullptr;
    };
    co_return co_await end_creation(steps.agreement, error, make, result);
}

Task merge(Comm& intercomm, bool high, Comm*& result, int error_here) {
    const ErrorHere mine(error_or_revoked(intercomm, error_here));
    Exchange& exchange = exchange_of(intercomm);
    Steps steps(exchange);
    std::vector<SplitRequest> claims;
    const int error = mine.or_else(co_await exchange_claims(steps.exchange, high, 0, claims));
    const std::function<Comm*()> make = [&] {
        const bool their_high = claims[static_cast<size_t>(exchange.remote_base)].color != 0;
        const bool mine_first = high == their_high ? intercomm.local_first : !high;
        comm::Group& local = intercomm.local_group();
        comm::Group& remote = intercomm.remote_group();
        return mine_first ? make_intracomm(claims[0].context, concatenate(local, remote), intercomm.rank, intercomm.errhandler)
                          : make_intracomm(claims[0].context, concatenate(remote, local), intercomm.peer_count + intercomm.rank,
                                           intercomm.errhandler);
    };
    co_return co_await end_creation(steps.agreement, error, make, result);
}

}  // namespace starling::collective
