#include "collective/neighborhood.h"

namespace starling::collective {

namespace {

using comm::NeighborEdge;
using comm::Neighborhood;

// All at once: how many messages there are the program has said, and no other process has fewer to send.
Task exchange_blocks(View v, const Neighborhood& near, Blocks send, bool same_for_all, Blocks receive) {
    Group group(v, static_cast<int>(near.sends.size()), static_cast<int>(near.receives.size()));
    for (const NeighborEdge& from : near.receives)
        group.receive(receive.at(from.block), receive.count(from.block), receive.type(from.block), from.rank);
    for (const NeighborEdge& to : near.sends) {
        const int block = same_for_all ? 0 : to.block;
        group.send(send.at(block), send.count(block), send.type(block), to.rank);
    }
    co_await group;
    co_return v.error;
}

Task begin(CommCall& call, const Neighborhood& near, const Blocks& send, bool same_for_all, const Blocks& receive) {
    call.view = View::all(call.exchange);
    if (near.sends.empty() && near.receives.empty()) return Task::over(MPI_SUCCESS);
    if (profile::watching) [[unlikely]] {
        const bool sends = !near.sends.empty();
        const int block = sends ? (same_for_all ? 0 : near.sends[0].block) : near.receives[0].block;
        profile::note_choice("linear", (sends ? send : receive).bytes(block));
    }
    return exchange_blocks(call.view, near, send, same_for_all, receive);
}

}  // namespace

Task neighbor_allgather(CommCall& call, const Neighborhood& near, const void* send, int64_t count, const Datatype& type,
                        const Blocks& receive) {
    return begin(call, near, Blocks(send, count, type), true, receive);
}

Task neighbor_alltoall(CommCall& call, const Neighborhood& near, const Blocks& send, const Blocks& receive) {
    return begin(call, near, send, false, receive);
}

}  // namespace starling::collective
