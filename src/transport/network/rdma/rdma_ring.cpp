#include "transport/network/rdma/rdma_ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/config.h"
#include "base/counter_start.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/live.h"
#include "transport/network/rdma/rc_connection.h"

namespace starling::network {

namespace {
/// Longest time (ns) that the words of one write may take to become visible.
constexpr uint64_t kTornMost = 1'000'000'000;
}  // namespace

// Four sums of words run side by side: the bytewise hash of base/hash.h would take longer than the transfer of a long frame. Each step of
// the first loop names its four sums, so that they stay in registers.
uint32_t RcRing::check_of(const std::byte* frame, const RcSlotEnd& end) {
    constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
    constexpr size_t kLanes = 4;
    uint64_t sums[kLanes] = {end.after, end.consumed, end.bytes, end.stamp};
    const auto add = [&sums, frame](size_t lane, size_t word_index) {
        uint64_t word;
        std::memcpy(&word, frame + 8 * word_index, sizeof word);
        sums[lane] = (sums[lane] ^ word) * kFactor;
    };
    const size_t words = (end.bytes + 7) / 8;
    size_t i = 0;
    for (; i + kLanes <= words; i += kLanes) {
        add(0, i);
        add(1, i + 1);
        add(2, i + 2);
        add(3, i + 3);
    }
    for (size_t lane = 0; i < words; ++lane, ++i) add(lane, i);
    uint64_t all = 0;
    for (const uint64_t sum : sums) all = (all ^ sum ^ sum >> 32) * kFactor;
    return static_cast<uint32_t>(all >> 32);
}

std::unique_ptr<RcRing> RcRing::make(RcPort& port) {
    void* const pages = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
    std::unique_ptr<RcRing> made(new RcRing(port, static_cast<std::byte*>(pages)));
    made->registration_ = port.registrations().hold(pages, kBytes);
    return made->registration_ ? std::move(made) : nullptr;
}

RcRing::~RcRing() {
    if (registration_ && !port_.forgotten()) port_.registrations().done(*registration_);
    munmap(memory_, kBytes);
}

RcRingOffer RcRing::offer(bool noted) const {
    return {reinterpret_cast<uint64_t>(memory_), registration_->memory.remote, noted};
}

RcRing::RingFrame RcRing::front() {
    const std::byte* const end = slot_end(taken_) - sizeof(RcSlotEnd);
    auto* const trailer = reinterpret_cast<RcSlotEnd*>(const_cast<std::byte*>(end));
    if (std::atomic_ref(trailer->stamp).load(std::memory_order_acquire) != lap(taken_)) return {};
    const std::byte* const frame = end - (std::min(trailer->bytes, kMost) + 7) / 8 * 8;
    if (trailer->bytes > kMost || check_of(frame, *trailer) != trailer->check) [[unlikely]] {
        const uint64_t now = now_ns();
        if (torn_since_ == 0) torn_since_ = now;
        return now - torn_since_ < kTornMost ? RingFrame{} : RingFrame{frame, trailer, true};
    }
    torn_since_ = 0;
    return {frame, trailer};
}

void RcRing::point(const RcRingOffer& offer) {
    there_ = offer;
    written_ = credited_ = kCounterStart;
    left = false;
}

verbs::WorkStatus RcRing::send(verbs::Queue& queue, uint32_t inline_bytes, const iovec* parts, int count, uint64_t bytes,
                               uint32_t after, uint32_t consumed) {
    if (bytes > kMost) return verbs::WorkStatus::too_long;
    if (written_ - credited_ == kSlots) return verbs::WorkStatus::busy;
    const auto length = static_cast<uint32_t>((bytes + 7) / 8 * 8 + sizeof(RcSlotEnd));
    std::byte* const from = slot_end(written_) - length;
    std::byte* to = from;
    for (int i = 0; i < count; to += parts[i++].iov_len)
        if (parts[i].iov_len) std::memcpy(to, parts[i].iov_base, parts[i].iov_len);
    RcSlotEnd end{after, consumed, static_cast<uint32_t>(bytes), 0, 0, lap(written_)};
    end.check = check_of(from, end);
    std::memcpy(from + length - sizeof end, &end, sizeof end);
    verbs::Queue::Transfer what;
    what.memory = from;
    what.local = length <= inline_bytes ? 0 : registration_->memory.local;
    what.bytes = length;
    what.address = there_.address + static_cast<uint64_t>(from - memory_);
    what.remote = there_.key;
    what.quiet = true;
    const verbs::WorkStatus status = there_.noted ? queue.write_with_note(what, kWord) : queue.write(what);
    if (status != verbs::WorkStatus::done) return status;
    ++written_;
    lent |= what.local != 0;
    return status;
}

bool RcRing::credit(uint32_t consumed) {
    if (written_ - consumed > written_ - credited_) return false;
    credited_ = consumed;
    return true;
}

// How RC connections use rings: granting, withdrawing, and receiving from them.

namespace {
constexpr uint32_t kLooks = 256;  ///< short frames on connections without a ring after which the use of all rings is compared
}

/// Makes a ring for a hello or ring frame, if the quota and the memory allow it. Returns false otherwise.
bool Rc::grant_ring(RcConnection& connection, RcRingOffer& offer) {
    if (connection.ring_in_ || connection.no_ring_ || rings_ >= static_cast<uint32_t>(live(config().max_direct))) return false;
    connection.ring_in_ = RcRing::make(*connection.port_);
    connection.no_ring_ = !connection.ring_in_;
    if (connection.no_ring_) return clear_failure(), false;
    starling::counters.verbs_rings = ++rings_;
    offer = connection.ring_in_->offer(config().wait != WaitPolicy::poll);
    return true;
}

// Withdraws the ring that the peer writes into. The frame being handled may be in the ring, so poll() frees it.
void Rc::drop_ring_in(RcConnection& connection) {
    if (!connection.ring_in_) return;
    starling::counters.verbs_rings = --rings_;
    old_rings_.push_back(std::move(connection.ring_in_));
}

/// Handles the owner's offer of a ring. Returns false if it is malformed.
bool Rc::on_ring_offer(RcConnection& connection, const std::byte* data, uint32_t bytes) {
    RcRingOffer offer;
    if (bytes != sizeof(RcFrame) + sizeof offer) return false;
    std::memcpy(&offer, data + sizeof(RcFrame), sizeof offer);
    if (connection.ring_out_ && !connection.ring_out_->left) return false;
    // Reuse the mirror of an earlier ring: its owner received ring_left, behind all writes, before it sent this offer.
    if (!connection.ring_out_) connection.ring_out_ = RcRing::make(*connection.port_);
    if (connection.ring_out_) return connection.ring_out_->point(offer), true;
    clear_failure();
    return on_ring_back(connection);
}

/// Handles the owner's request to stop using its ring, or refuses an offer. The reply follows all writes into the ring.
bool Rc::on_ring_back(RcConnection& connection) {
    if (connection.ring_out_) connection.ring_out_->left = true;
    connection.left_pending_ = send_frame(connection, RcFrame::RcFrameKind::ring_left) == verbs::WorkStatus::busy;
    return true;
}

/// Handles the peer's reply ring_left, which it sends behind all frames that it wrote into the ring.
void Rc::on_ring_left(RcConnection& connection) {
    connection.no_ring_ = connection.ring_in_ && !connection.ring_in_->leaving;
    drop_ring_in(connection);
    pass_on_place();
}

/// Waits, before the finish frame, until the device no longer reads the mirror. A lingering queue reports nothing. If the mirror were freed
/// too early, the queue would break, and the peer would not get the finish frame. Therefore an empty write after all others reports when
/// the device is done. Returns false if it is still pending; its `done` event then sends the finish frame.
bool Rc::settle_ring(RcConnection& connection) {
    RcRing* const ring = connection.ring_out_.get();
    if (!ring || !ring->lent) return true;
    RcOperation& mark = acquire_operation(connection, RcOperation::RcOperationKind::write);
    verbs::Queue::Transfer what;
    what.token = mark.token();
    if (connection.queue_->write(what) != verbs::WorkStatus::done) return release_operation(mark), false;
    ++mark.under_way;
    connection.issued_.push_back(&mark);
    return ring->lent = false;
}

bool Rc::send_by_ring(RcConnection& connection, const iovec* parts, int count) {
    RcRing* const ring = connection.ring_out_.get();
    if (!ring || ring->left || connection.left_pending_) return false;
    RcRing* const back = connection.ring_in_.get();
    const uint32_t taken = back ? back->taken() : 0;
    uint64_t bytes = 0;
    for (int i = 0; i < count; ++i) bytes += parts[i].iov_len;
    const uint32_t inline_bytes = connection.port().facts().inline_bytes;
    if (ring->send(*connection.queue_, inline_bytes, parts, count, bytes, connection.frames_out_, taken) !=
        verbs::WorkStatus::done)
        return false;
    if (back) back->reported = taken;
    ++counters_.frames_by_ring;
    starling::counters.messages_rc_ring += 1;
    starling::counters.bytes_rc_ring += bytes;
    return true;
}

/// Takes the frames in the connection's ring that are next in order. Returns whether there were any.
bool Rc::adopt_ring(RcConnection& connection) {
    bool any = false;
    for (uint32_t i = 0; connection.ring_in_ && i < RcRing::kSlots; ++i, any = true) {
        RcRing* const ring = connection.ring_in_.get();
        const RcRing::RingFrame frame = ring->front();
        if (!frame.end) break;
        if (!frame.broken && static_cast<int32_t>(frame.end->after - connection.frames_in_) > 0) break;
        if (connection.state_ != Connection::CarrierState::open) break;
        ++connection.short_frames_;
        const uint32_t consumed = frame.end->consumed;
        try {
            const bool sane = !frame.broken &&
                              (!connection.ring_out_ || connection.ring_out_->left || connection.ring_out_->credit(consumed));
            if (!sane || !handle_frame(connection, frame.data, frame.end->bytes)) refuse(connection);
        } catch (const std::bad_alloc&) { broke(connection, "out of memory"); }
        if (connection.ring_in_.get() == ring) ring->pop();
    }
    RcRing* const ring = connection.ring_in_.get();
    if (ring && connection.queue_ && ring->taken() - ring->reported >= RcRing::kSlots / 2 &&
        send_frame(connection, RcFrame::RcFrameKind::consumed, ring->taken()) == verbs::WorkStatus::done)
        ring->reported = ring->taken();
    return any;
}

bool Rc::poll_rings() {
    if (rings_ == 0) return false;
    bool any = false;
    for (size_t i = 0; i < connections_.size(); ++i)
        if (connections_[i]->ring_in_) any |= adopt_ring(*connections_[i]);
    return any;
}

bool Rc::may_have_ring(const RcConnection& one) const {
    return one.state_ == Connection::CarrierState::open && !one.ring_in_ && !one.finished_ && !one.no_ring_;
}

bool Rc::may_grant_ring(const RcConnection& one) const {
    return one.state_ == Connection::CarrierState::open && one.ring_in_ && !one.ring_in_->leaving && !one.finished_;
}

void Rc::request_ring_back(RcConnection& connection) {
    connection.ring_in_->leaving = send_frame(connection, RcFrame::RcFrameKind::ring_back) == verbs::WorkStatus::done;
    if (connection.ring_in_->leaving) ++starling::counters.verbs_rings_moved;
}

/// Counts a short frame that arrived by the queue. The connection may now earn a ring, if necessary one withdrawn from a connection with
/// less traffic. With STARLING_PLAN=static no ring is withdrawn.
void Rc::earn_ring(RcConnection& connection) {
    ++connection.short_frames_;
    if (!may_have_ring(connection)) return;
    if (connection.short_frames_ < static_cast<uint64_t>(live(config().direct_threshold))) return;
    if (rings_ < static_cast<uint32_t>(live(config().max_direct)))
        return static_cast<void>(send_frame(connection, RcFrame::RcFrameKind::ring));
    if (config().plan == PlanSource::first || ++in_line_ < kLooks) return;
    in_line_ = 0;
    RcConnection* least = nullptr;
    for (auto& one : connections_)
        if (one->ring_in_ && one->foreseen_ <= connection.foreseen_ && (!least || one->short_frames_ < least->short_frames_))
            least = one.get();
    if (least && may_grant_ring(*least) && 2 * least->short_frames_ < connection.short_frames_) request_ring_back(*least);
    for (auto& one : connections_) one->short_frames_ /= 2;
}

void Rc::set_expected_traffic(RcConnection& connection, uint32_t messages) {
    connection.foreseen_ = messages;
    seek_ring(connection);
}

/// Grants a ring to a connection in the plan, which need not earn it. If the quota is used up, withdraws the ring of the connection with
/// the least expected traffic, provided that traffic is less. Among equals it is the one with the fewest frames so far.
void Rc::seek_ring(RcConnection& connection) {
    if (connection.foreseen_ == 0 || !may_have_ring(connection)) return;
    if (rings_ < static_cast<uint32_t>(live(config().max_direct)))
        return static_cast<void>(send_frame(connection, RcFrame::RcFrameKind::ring));
    RcConnection* least = nullptr;
    const auto worth = [](const RcConnection& one) { return std::pair(one.foreseen_, one.short_frames_); };
    for (auto& one : connections_)
        if (may_grant_ring(*one) && (!least || worth(*one) < worth(*least))) least = one.get();
    if (least && least->foreseen_ < connection.foreseen_) request_ring_back(*least);
}

/// Grants another connection a ring after one was returned. The connection with the most expected traffic gets it; without a plan, the next
/// to earn one.
void Rc::pass_on_place() {
    RcConnection* most = nullptr;
    for (auto& one : connections_)
        if (one->foreseen_ > 0 && may_have_ring(*one) && (!most || one->foreseen_ > most->foreseen_)) most = one.get();
    if (most) seek_ring(*most);
}

}  // namespace starling::network
