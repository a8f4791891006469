#include "shmem/connect_all.h"

#include "collective/collective.h"
#include "collective/collective_request.h"
#include "collective/comm_call.h"
#include "link/peer.h"
#include "progress/engine.h"
#include "shmem/collective.h"
#include "shmem/entry.h"
#include "shmem/pe_table.h"

namespace starling::shmem {

namespace {

/// The description of its heap that each PE sends to all others, as other implementations do at the start (docs/openshmem.md).
struct Segment {
    uint64_t address, bytes, key;
};

void exchange_segments() {
    const Segment mine{reinterpret_cast<uintptr_t>(world().pages.data()), world().heap.limit(), world().keys[0].secret};
    std::vector<Segment> all(static_cast<size_t>(world().pes));
    const auto& bytes = collective::byte_type();
    collective::CommCall call(*world().everyone->comm, true);
    const collective::Blocks blocks(all.data(), sizeof(Segment), bytes);
    if (collective::run(call, collective::allgather(call, &mine, sizeof mine, bytes, blocks))) complain_of_failure();
}

/// Requests a connection and waits until it is connected or refused.
void connect(link::Peer& peer) {
    if (peer.state == link::ConnectionState::closed) link::request_connection(peer);
    const uint32_t refusals = peer.backoff;
    progress::wait_until([&] {
        return peer.state == link::ConnectionState::connected || peer.state == link::ConnectionState::closed ||
               peer.backoff != refusals;
    });
}

}  // namespace

void connect_all() {
    if (barrier(*world().everyone)) complain_of_failure();
    exchange_segments();
    for (int distance = 1; distance < world().pes; ++distance) {
        const int pe = (world().me + distance) % world().pes;
        remote_pe(pe);
        link::Peer* peer = link::self().job->peer(static_cast<uint32_t>(pe));
        if (!peer) complain_of_failure();
        connect(*peer);
    }
    if (barrier(*world().everyone)) complain_of_failure();
}

}  // namespace starling::shmem
