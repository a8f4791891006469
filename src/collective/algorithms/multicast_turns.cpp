// Algorithms in which every leader of a host multicasts its own part once, in turns. A leader thus sends its part, where a ring of n leaders
// sends n - 1 parts from each.
//
// 1. All report to rank 0 whether they can use the group. Rank 0 decides, and broadcasts whether the call takes turns or uses a ring. If the ring
//    is faster or the group is not ready, the decision includes some further calls.
// 2. Everyone posts receives for all parts, so no part is stored elsewhere, however many senders there are.
// 3. Two chains of members send: in each, a member sends when the part of the member before it has arrived. That part is the token; a network
//    loses no time with another one. Two senders at a time keep all cables busy while a chain passes from one sender to the next, and use
//    both directions of a cable between two switches. More senders would only compete for the receivers' buffers.
//
// A sender that cannot use the group at its turn, or has an error, sends messages to all others. So receivers wait for both.
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "base/error.h"
#include "collective/algorithms.h"
#include "collective/algorithms/host_blocks.h"
#include "collective/algorithms/leader_broadcast.h"
#include "collective/algorithms/multicast_awaiters.h"
#include "collective/algorithms/wide_tree.h"
#include "collective/collective.h"
#include "collective/core/leaders.h"
#include "collective/core/way_meter.h"
#include "message/error_marker.h"

namespace starling::collective {

namespace {

/// The longest wait for space in the group. All members have posted their receives, so only messages of earlier calls can delay it.
constexpr uint64_t kTurnPatienceNs = 50'000'000;
/// Distinguishes a part's multicast from the decision's, which has the call's own number.
constexpr uint64_t kPart = uint64_t{1} << 63;

/// Rank 0's decision.
struct TurnDecision {
    enum DecidedWay : int32_t { unknown, stop, ring, turns } way = unknown;
    int32_t error = MPI_SUCCESS;  ///< class of the error for which all stop
    uint32_t ring_calls = 0;      ///< number of further blocking calls of this size that use the ring

    bool is_known() const { return way >= stop && way <= turns; }
};

/// The order in which the members of each chain send. The first member of a chain is the last to send: rank 0 then need not wait until its
/// decision is acknowledged.
class SendingOrder {
  public:
    SendingOrder(const View& v, const Blocks& blocks) {
        constexpr int kChains = 2;
        for (int chain = 0; chain < kChains; ++chain) {
            const int first = chain * v.n / kChains, end = (chain + 1) * v.n / kChains;
            if (v.me < first || v.me >= end) continue;
            for (int i = first + 1; i < end; ++i) add(i, v.me, blocks);
            add(first, v.me, blocks);
        }
    }
    /// Returns the member whose part must have arrived before this one sends; -1: none.
    int before() const { return before_; }

  private:
    void add(int rank, int me, const Blocks& blocks) {
        passed_ |= rank == me;
        if (!passed_ && blocks.bytes(rank) > 0) before_ = rank;
    }

    int before_ = -1;
    bool passed_ = false;
};

/// Another member's part.
struct TurnPart {
    PackedBuffer packed;
    EitherReceive receive;
    bool ended = false;

    TurnPart(View& v, const Blocks& blocks, int from, uint64_t call)
        : packed(blocks.at(from), blocks.count(from), blocks.type(from)),
          receive(v, packed.data(), packed.bytes(), packed.bytes(), {from, from, call}) {}
};

/// Awaits a part whose receive has been started.
Task end_part(TurnPart& part) {
    if (part.ended) co_return MPI_SUCCESS;
    const EitherReceive::By by = co_await part.receive;
    if (by == EitherReceive::By::coming) co_await part.receive.parent();
    if (part.receive.end(by)) part.packed.store();
    part.ended = true;
    co_return MPI_SUCCESS;
}

/// Sends this member's part, or error markers, to all others.
Task send_part(View v, Blocks blocks, uint64_t call) {
    PackedBuffer packed(blocks.at(v.me), blocks.count(v.me), blocks.type(v.me));
    packed.load();
    multicast::MulticastSend send;
    if (v.error == MPI_SUCCESS) co_await SpaceAwaiter(*v.cast, packed.bytes(), kTurnPatienceNs);
    if (v.error == MPI_SUCCESS && v.cast->start_send(send, call, packed.data(), packed.bytes())) {
        ++counters.group_turns;
        co_await RequestDone{send};
        v.note(progress::error_of(send));
        co_return v.error;
    }
    RequestGroup all(v, v.n - 1, 0);
    for (int i = 1; i < v.n; ++i) all.send(packed.data(), static_cast<int64_t>(packed.bytes()), byte_type(), (v.me + i) % v.n);
    co_await all;
    co_return v.error;
}

Task take_turns(View v, Blocks blocks, uint64_t call) {
    std::vector<std::unique_ptr<TurnPart>> parts(static_cast<size_t>(v.n));
    for (int from = 0; from < v.n; ++from)
        if (from != v.me && blocks.bytes(from) > 0)
            parts[static_cast<size_t>(from)] = std::make_unique<TurnPart>(v, blocks, from, call);
    for (const auto& part : parts)
        if (part) part->receive.start();
    if (blocks.bytes(v.me) > 0) {
        v.cast->hasten();
        const int before = SendingOrder(v, blocks).before();
        if (before >= 0) co_await end_part(*parts[static_cast<size_t>(before)]);
        v.note(co_await send_part(v, blocks, call));
    }
    for (const auto& part : parts)
        if (part) co_await end_part(*part);
    co_return v.error;
}

/// Ends the turns of a leader that has not received the decision. It sends an error marker to all other leaders, and discards what they send.
Task leave_turns(View v, Blocks blocks, uint64_t call) {
    RequestGroup markers(v, v.n - 1, 0);
    for (int i = 1; i < v.n; ++i) markers.send(blocks.at(v.me), blocks.count(v.me), blocks.type(v.me), (v.me + i) % v.n);
    for (int i = 1; i < v.n; ++i) {
        const int from = (v.me + i) % v.n;
        v.exchange->throw_away(0, v.participant(from), v.tag);
        if (blocks.bytes(from) == 0) continue;
        multicast::MulticastReceive receive;
        v.cast->start_receive(receive, from, call, nullptr, 0);
        v.cast->refuse(receive);
    }
    co_await markers;
    co_return v.error;
}

/// Ends the ring of a member that has not received the decision, with as many messages as the ring has.
Task leave_ring(View v, Blocks blocks) {
    const int right = (v.me + 1) % v.n, left = (v.me - 1 + v.n) % v.n;
    RequestGroup markers(v, v.n - 1, 0);
    for (int i = 1; i < v.n; ++i) markers.send(blocks.at(v.me), blocks.count(v.me), blocks.type(v.me), right);
    for (int i = 1; i < v.n; ++i) v.exchange->throw_away(0, v.participant(left), v.tag);
    co_await markers;
    co_return v.error;
}

/// The leaders of hosts in an allgather: all members, or one of each host.
class TurnHosts {
  public:
    explicit TurnHosts(const View& v) : map_(v.members ? nullptr : v.exchange->hosts()) {}

    const HostMap* map() const { return map_; }
    bool leads() const { return !map_ || map_->leads(); }
    View leaders(const View& v) const {
        View view = map_ ? between(v, map_->leaders, *map_, v.error) : v;
        view.cast = v.turns;
        return view;
    }
    View node(const View& v) const { return v.of(map_->mine, map_->my_place); }

  private:
    const HostMap* const map_;  ///< null: no two members share a host
};

/// Ends the call of a member that has not received the decision: it takes part in both possible ones. Messages that the others do not receive
/// remain unread, as all later calls on the communicator fail.
Task leave_undecided(View v, const TurnHosts hosts, Blocks blocks, uint64_t call) {
    v.note(co_await leave_ring(v, blocks));
    if (!hosts.map()) co_return co_await leave_turns(hosts.leaders(v), blocks, call);
    HostBlocks all(v, *hosts.map(), blocks);
    co_await all.collect(hosts.node(v));
    if (hosts.leads()) co_await leave_turns(hosts.leaders(v), all.parts(), call);
    co_return v.error;
}

/// Collects at rank 0 whether all members are ready for turns, and broadcasts rank 0's decision. A member whose own error has reached rank 0
/// gets a decision to stop, as all others do.
Task decide(View v, WayMeter& ways, uint64_t bytes, TurnDecision& decision) {
    const WideTree way(v);
    auto ready = static_cast<std::byte>(v.cast->is_ready());
    std::vector<std::byte> others(static_cast<size_t>(way.children()));
    RequestGroup arrivals(v, 0, way.children());
    for (int i = 0; i < way.children(); ++i) arrivals.receive(&others[static_cast<size_t>(i)], 1, byte_type(), way.first + i);
    co_await arrivals;
    for (const std::byte other : others) ready &= other;
    if (v.me != 0) co_await v.send(&ready, 1, byte_type(), way.parent);
    View sound = v;
    sound.error = {};
    if (v.me == 0 && v.error != MPI_SUCCESS) {
        decision = {TurnDecision::stop, v.error, 0};
    } else if (v.me == 0) {
        const WayMeter::GatherChoice choice = ways.next(bytes, ready == std::byte{1}, v.cast->measures());
        decision.way = choice.way == WayMeter::GatherWay::turns ? TurnDecision::turns : TurnDecision::ring;
        decision.ring_calls = choice.ring_calls;
    }
    v.note(co_await leader_broadcast(sound, &decision, sizeof decision, byte_type(), 0));
    co_return v.error;
}

/// Has the leaders decide; each passes the decision on within its host.
Task decide_on_hosts(View v, const TurnHosts hosts, WayMeter& ways, uint64_t bytes, TurnDecision& decision) {
    if (hosts.leads()) v.note(co_await decide(hosts.leaders(v), ways, bytes, decision));
    if (!hosts.map()) co_return v.error;
    View node = hosts.node(v);
    node.error = {};
    v.note(co_await bcast(node, &decision, sizeof decision, byte_type(), 0));
    co_return v.error;
}

Task take_turns_on_hosts(View v, const TurnHosts hosts, Blocks blocks, uint64_t call) {
    if (!hosts.map()) co_return co_await take_turns(hosts.leaders(v), blocks, call);
    HostBlocks all(v, *hosts.map(), blocks);
    View node = hosts.node(v);
    node.note(co_await all.collect(node));
    v.note(node.error);
    if (hosts.leads()) node.note(co_await take_turns(hosts.leaders(v), all.parts(), call));
    co_return co_await all.distribute(node);
}

/// Returns the bytes of all blocks together.
uint64_t total_bytes(const View& v, const Blocks& blocks) {
    uint64_t sum = 0;
    for (int i = 0; i < v.n; ++i) sum += blocks.bytes(i);
    return sum;
}

}  // namespace

Task allgather_multicast_turns(View v, Blocks blocks) {
    const TurnHosts hosts(v);
    WayMeter& ways = v.turns->ways(v.members != nullptr);
    const uint64_t bytes = total_bytes(v, blocks), call = kPart | v.exchange->call_number(v.tag);
    if (ways.lost) {
        v.note(v.ended());
        v.note(fail(MPI_ERR_OTHER,
                    "an earlier collective failed on this communicator, so its members may disagree on how this one is sent"));
        co_return co_await leave_undecided(v, hosts, blocks, call);
    }
    if (v.blocking && ways.uses_ring(bytes, v.turns->measures())) co_return co_await allgather_ring(v, blocks);
    TurnDecision decision;
    v.note(co_await decide_on_hosts(v, hosts, ways, bytes, decision));
    v.tag = Exchange::second_tag(v.tag);
    if (decision.way == TurnDecision::stop) {
        v.note(message::ErrorMarker::failed_elsewhere(decision.error));
        co_return v.error;
    }
    if (!decision.is_known()) {
        v.note(fail(MPI_ERR_INTERN, "no leader decided how this collective is sent; report this as a bug of Starling"));
        ways.lost = true;
        co_return co_await leave_undecided(v, hosts, blocks, call);
    }
    if (v.blocking) ways.expect_ring(bytes, decision.ring_calls);
    const uint64_t start = now_ns();
    const bool turns = decision.way == TurnDecision::turns;
    if (turns)
        v.note(co_await take_turns_on_hosts(v, hosts, blocks, call));
    else
        v.note(co_await allgather_ring(v, blocks));
    if (v.me == 0 && v.error == MPI_SUCCESS)
        ways.note(turns ? WayMeter::GatherWay::turns : WayMeter::GatherWay::ring, bytes, now_ns() - start);
    co_return v.error;
}

Task allreduce_multicast_turns(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op) {
    v.note(co_await reduce_around(v, send, receive, count, type, op));
    // Each rank has the result of the piece that follows its own.
    std::vector<int64_t> counts(static_cast<size_t>(v.n)), offsets(static_cast<size_t>(v.n));
    for (int rank = 0; rank < v.n; ++rank) {
        const ElementRange piece = part_of(count, v.n, (rank + 1) % v.n);
        counts[static_cast<size_t>(rank)] = piece.count;
        offsets[static_cast<size_t>(rank)] = piece.offset;
    }
    const Blocks pieces(receive, Counts(counts.data()), Counts(offsets.data()), type);
    co_return co_await allgather_multicast_turns(v, pieces);
}

}  // namespace starling::collective
