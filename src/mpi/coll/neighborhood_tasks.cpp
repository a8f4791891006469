#include "mpi/coll/neighborhood_tasks.h"

#include <algorithm>

#include "collective/algorithms/neighborhood.h"
#include "mpi/common/buffer_overlap.h"

namespace starling::mpi {

namespace {

using collective::CommCall;
using comm::Neighborhood;
using Edges = std::vector<comm::NeighborEdge>;

/// Returns the buffer to check. A process without edges may pass any buffer, so the address of `edges`, which is never null, stands in for
/// it.
const void* buffer_for(const Edges& edges, const void* buffer) { return edges.empty() ? &edges : buffer; }

BlockArguments side(const Edges& edges, const BlockArguments& given) {
    BlockArguments blocks = given;
    blocks.buffer = buffer_for(edges, given.buffer);
    return blocks;
}

void check_buffers(CollectiveCall& call, const void* send, const void* receive) {
    call.not_in_place(send);
    call.not_in_place(receive);
}

// Returns whether data to send overlaps a block to receive. Only blocks of existing edges count: blocks beyond the border of a grid are
// neither read nor written.
bool overlap_at_edges(const TypedBuffer& send, const Edges& receives, const Blocks& into) {
    for (const comm::NeighborEdge& edge : receives)
        if (overlap(send, block(into, edge.block))) return true;
    return false;
}

bool overlap_at_edges(const Neighborhood& near, const Blocks& from, const Blocks& into) {
    const auto sends = static_cast<int>(near.sends.size()), receives = static_cast<int>(near.receives.size());
    if (sends == near.destinations && receives == near.sources) return overlap(from, into, std::min(sends, receives));
    for (size_t i = 0; i < std::min(near.sends.size(), near.receives.size()); ++i)
        if (overlap(block(from, near.sends[i].block), block(into, near.receives[i].block))) return true;
    return false;
}

}  // namespace

Task neighbor_allgather_task(CollectiveCall& call, const void* send, MPI_Count count, MPI_Datatype datatype,
                             const BlockArguments& receive) {
    const Neighborhood* near = call.neighborhood();
    if (!call.ok()) return {};
    check_buffers(call, send, receive.buffer);
    const Datatype* type = call.data(buffer_for(near->sends, send), count, datatype);
    const BlockArguments in = side(near->receives, receive);
    const Datatype* receive_type = in.check(call, near->sources);
    if (!call.ok()) return {};
    const Blocks blocks = in.blocks(call, near->sources, *receive_type);
    if (!near->sends.empty()) call.not_aliased(overlap_at_edges({send, count, *type}, near->receives, blocks));
    if (!call.ok()) return {};
    return call.make([=](CommCall& to) { return collective::neighbor_allgather(to, *near, send, count, *type, blocks); });
}

Task neighbor_alltoall_task(CollectiveCall& call, const BlockArguments& send, const BlockArguments& receive) {
    const Neighborhood* near = call.neighborhood();
    if (!call.ok()) return {};
    check_buffers(call, send.buffer, receive.buffer);
    const BlockArguments out = side(near->sends, send), in = side(near->receives, receive);
    const Datatype* type = out.check(call, near->destinations);
    const Datatype* receive_type = in.check(call, near->sources);
    if (!call.ok()) return {};
    const Blocks from = out.blocks(call, near->destinations, *type), into = in.blocks(call, near->sources, *receive_type);
    call.not_aliased(overlap_at_edges(*near, from, into));
    if (!call.ok()) return {};
    return call.make([=](CommCall& to) { return collective::neighbor_alltoall(to, *near, from, into); });
}

Task neighbor_alltoallw_task(CollectiveCall& call, const void* send, Counts send_counts, Counts send_displacements,
                             const MPI_Datatype send_types[], void* receive, Counts receive_counts,
                             Counts receive_displacements, const MPI_Datatype receive_types[]) {
    const Neighborhood* near = call.neighborhood();
    if (!call.ok()) return {};
    check_buffers(call, send, receive);
    const auto out_types =
        call.typed_blocks(near->destinations, buffer_for(near->sends, send), send_counts, send_displacements, send_types, 0);
    const auto in_types = call.typed_blocks(near->sources, buffer_for(near->receives, receive), receive_counts,
                                            receive_displacements, receive_types, 1);
    if (!call.ok()) return {};
    const Blocks from(send, call.copy_array(send_counts, near->destinations),
                      call.copy_array(send_displacements, near->destinations), out_types);
    const Blocks into(receive, call.copy_array(receive_counts, near->sources),
                      call.copy_array(receive_displacements, near->sources), in_types);
    call.not_aliased(overlap_at_edges(*near, from, into));
    if (!call.ok()) return {};
    return call.make([=](CommCall& to) { return collective::neighbor_alltoall(to, *near, from, into); });
}

}  // namespace starling::mpi
