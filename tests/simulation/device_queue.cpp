#include "device_queue.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "system.h"
#include "transport/network/rdma/rdma_ring.h"

namespace starling::simulation {

namespace {

// Values that the plugin sets (src/plugins/verbs/connection.cpp).
constexpr uint64_t kRepeatNs = 268'000'000, kNotReadyNs = 640'000;
constexpr uint32_t kMostTries = 7;

uint64_t number_at(uint64_t address) {
    uint64_t word = 0;
    std::memcpy(&word, reinterpret_cast<const void*>(address), sizeof word);
    return word;
}

void put_at(uint64_t address, const void* bytes, size_t count) {
    if (count != 0) std::memcpy(reinterpret_cast<void*>(address), bytes, count);
}

}  // namespace

SimulatedQueue::SimulatedQueue(SimulatedPort& port, void* user)
    : port_(port), user_(user), number_(port.devices().draw_number()) {
    port.devices().queues[number_] = this;
}

SimulatedQueue::~SimulatedQueue() { port_.devices().queues.erase(number_); }

verbs::QueueAddress SimulatedQueue::address() const {
    verbs::QueueAddress all;
    std::memcpy(all.gid, port_.facts().gid, sizeof all.gid);
    all.queue = number_;
    all.first = number_ * 77 & 0xffffff;
    all.mtu_log = static_cast<uint8_t>(std::bit_width(port_.facts().mtu) - 1);
    all.reads = 16;
    return all;
}

bool SimulatedQueue::connect(const verbs::QueueAddress& peer) {
    if (peer_ != 0) fail_run("a connection's queue is connected twice");
    if (broken_ || port_.gone()) return port_.say("the connection's queue is in error"), false;
    peer_ = peer.queue;
    return after(true);
}

// Functions for prices and times.

bool SimulatedQueue::is_ring_write(const Work& work) const {
    if (work.kind != Kind::write && work.kind != Kind::note) return false;
    const auto found = port_.devices().memory.find(work.what.remote);
    return found != port_.devices().memory.end() && found->second.bytes == network::RcRing::kBytes;
}

uint64_t SimulatedQueue::bytes_to_peer(const Work& work) {
    if (work.kind == Kind::frame) return work.bytes.size();
    return work.kind < Kind::read ? work.what.bytes : 0;
}

uint64_t SimulatedQueue::price_of(const Work& work) const {
    const Prices::Figures& of = prices().of;
    if (!prices().exact) return 0;
    if (work.kind == Kind::frame) return prices().with_bytes(of.rc_post, of.rc_byte, work.bytes.size());
    if (is_ring_write(work)) return prices().with_bytes(of.ring_write, of.ring_byte, work.what.bytes);
    return work.kind < Kind::read ? of.rdma_write : of.rdma_read;
}

uint64_t SimulatedQueue::transit(const Work& work) {
    if (!prices().exact) return network()->latency(Path::rc);
    const auto peer = port_.devices().queues.find(peer_);
    if (peer == port_.devices().queues.end()) return prices().of.rc_latency;
    const uint32_t to = peer->second->port_.host();
    return network()->transit(Path::rc, port_.host(), to, bytes_to_peer(work)) +
           network()->adapters().look_up(port_.host(), number_, to, peer_);
}

uint64_t SimulatedQueue::transit_back(const Work& work) {
    const auto peer = port_.devices().queues.find(peer_);
    if (!prices().exact || work.kind < Kind::read || peer == port_.devices().queues.end()) return network()->latency(Path::rc);
    return network()->transit(Path::rc, peer->second->port_.host(), port_.host(), work.what.bytes);
}

// Functions that post work.

verbs::WorkStatus SimulatedQueue::post(Work work) {
    pay(price_of(work));
    if (broken_ || closed_ || peer_ == 0 || port_.gone()) return verbs::WorkStatus::broken;
    World& w = port_.devices().world();
    if (works_.size() >= port_.devices().weather().places) {
        refused_busy_ = true;
        return verbs::WorkStatus::busy;
    }
    uint64_t takes = transit(work);
    // The frame is lost in transit, and the device retransmits it later.
    if (w.random.with(network()->weather().loss)) takes += w.random.below(network()->weather().late_ns);
    work.arrives = last_arrival_ = std::max(last_arrival_, w.now + takes);
    works_.push_back(std::move(work));
    later(last_arrival_, &SimulatedQueue::deliver);
    return after_paid(verbs::WorkStatus::done);
}

void SimulatedQueue::later(uint64_t when, void (SimulatedQueue::*what)()) {
    port_.devices().world().at(when, [number = number_, what] {
        const auto found = devices()->queues.find(number);
        if (found != devices()->queues.end()) (found->second->*what)();
    });
}

verbs::WorkStatus SimulatedQueue::send(const iovec* parts, int count) {
    Work work{.kind = Kind::frame, .bytes = gather(parts, static_cast<size_t>(count))};
    if (work.bytes.size() > port_.frame_limit()) return verbs::WorkStatus::too_long;
    const verbs::WorkStatus status = post(std::move(work));
    if (status == verbs::WorkStatus::done) ++port_.count.frames_sent;
    return status;
}

verbs::WorkStatus SimulatedQueue::transfer(Work work) {
    const bool writes = work.kind == Kind::write || work.kind == Kind::note;
    if (writes && work.what.bytes <= port_.facts().inline_bytes) {
        work.inlined = true;
        work.bytes.assign(static_cast<const char*>(work.what.memory), work.what.bytes);
    }
    const verbs::WorkStatus status = post(std::move(work));
    if (status == verbs::WorkStatus::done) ++port_.count.transfers;
    return status;
}

verbs::WorkStatus SimulatedQueue::write(const Transfer& what) { return transfer({.kind = Kind::write, .what = what}); }
verbs::WorkStatus SimulatedQueue::write_with_note(const Transfer& what, uint32_t word) {
    return transfer({.kind = Kind::note, .what = what, .word = word});
}
verbs::WorkStatus SimulatedQueue::read(const Transfer& what) { return transfer({.kind = Kind::read, .what = what}); }
verbs::WorkStatus SimulatedQueue::fetch_add(const Transfer& what, uint64_t operand) {
    return transfer({.kind = Kind::add, .what = what, .operand = operand});
}
verbs::WorkStatus SimulatedQueue::compare_swap(const Transfer& what, uint64_t compare, uint64_t operand) {
    return transfer({.kind = Kind::swap, .what = what, .operand = operand, .compare = compare});
}

// Functions that transmit work.

SimulatedQueue* SimulatedQueue::reachable_peer() const {
    const auto found = port_.devices().queues.find(peer_);
    if (found == port_.devices().queues.end()) return nullptr;
    SimulatedQueue& peer = *found->second;
    const bool ready = peer.peer_ == number_ && !peer.broken_;
    return ready && port_.devices().carries(port_, peer.port_) ? &peer : nullptr;
}

bool SimulatedQueue::gives_up() {
    if (++tries_ <= kMostTries) return false;
    fail("nothing came back");
    return true;
}

void SimulatedQueue::deliver() {
    World& w = port_.devices().world();
    while (!broken_ && w.now >= next_try_ && delivered_ < works_.size() && works_[delivered_].arrives <= w.now) {
        if (w.random.with(port_.devices().weather().breaks)) return fail("it failed before it was there");
        SimulatedQueue* const peer = reachable_peer();
        if (!peer) {
            if (gives_up()) return;
            next_try_ = w.now + kRepeatNs;
            return later(next_try_, &SimulatedQueue::deliver);
        }
        tries_ = 0;
        const Outcome outcome = carry_out(works_[delivered_], *peer);
        if (outcome == Outcome::not_ready) {
            next_try_ = w.now + kNotReadyNs;
            return later(next_try_, &SimulatedQueue::deliver);
        }
        if (outcome == Outcome::refused) {
            peer->fail("the other side asked for memory that is not registered");
            return fail("the memory is not registered, or no longer");
        }
        ++delivered_;
        last_acknowledged_ = std::max(last_acknowledged_, w.now + transit_back(works_[delivered_ - 1]));
        later(last_acknowledged_, &SimulatedQueue::acknowledge);
    }
}

/// Completes the oldest work requests, as many as were delivered.
void SimulatedQueue::acknowledge() {
    if (broken_) return;
    World& w = port_.devices().world();
    if (!port_.works()) {
        if (!gives_up()) later(w.now + kRepeatNs, &SimulatedQueue::acknowledge);
        return;
    }
    if (w.random.with(port_.devices().weather().breaks)) return fail("it failed after it was there");
    Work work = std::move(works_.front());
    works_.pop_front();
    --delivered_;
    if (work.kind >= Kind::read) {
        check_own(work);
        put_at(reinterpret_cast<uint64_t>(work.what.memory), work.bytes.data(), work.bytes.size());
    }
    if (work.kind != Kind::frame && !work.what.quiet) tell_done(work, verbs::WorkStatus::done);
    if (closed_) {
        if (works_.empty()) port_.end(*this);
        return;
    }
    if (!std::exchange(refused_busy_, false)) return;
    verbs::VerbsEvent event;
    event.kind = verbs::VerbsEvent::VerbsEventKind::room;
    event.user = user_;
    port_.tell(event);
}

void SimulatedQueue::tell_done(const Work& work, verbs::WorkStatus status) {
    verbs::VerbsEvent event;
    event.kind = verbs::VerbsEvent::VerbsEventKind::done;
    event.status = status;
    event.user = closed_ ? nullptr : user_;
    event.token = work.what.token;
    port_.tell(event);
}

// Executes a work request at the peer.

SimulatedQueue::Outcome SimulatedQueue::carry_out(Work& work, SimulatedQueue& at) {
    if (work.kind == Kind::frame) {
        verbs::VerbsEvent event;
        event.kind = verbs::VerbsEvent::VerbsEventKind::frame;
        event.user = at.user_;
        if (at.closed_) return Outcome::done;
        if (!at.port_.bring(event, work.bytes)) return Outcome::not_ready;
        ++at.port_.count.frames_received;
        return Outcome::done;
    }
    check_own(work);
    const auto found = port_.devices().memory.find(work.what.remote);
    const bool known = found != port_.devices().memory.end() && found->second.by == &at.port_ &&
                       found->second.holds(work.what.address, work.what.bytes);
    if (work.what.bytes != 0 && !known) return Outcome::refused;
    return work.kind <= Kind::note ? write_there(work, at) : read_there(work, at);
}

SimulatedQueue::Outcome SimulatedQueue::write_there(Work& work, SimulatedQueue& at) {
    if (work.kind == Kind::note && !at.port_.has_buffer()) return Outcome::not_ready;
    put_at(work.what.address, work.inlined ? work.bytes.data() : work.what.memory, work.what.bytes);
    if (prices().exact && is_ring_write(work))
        at.port_.owner().owed += prices().with_bytes(prices().of.ring_receive, prices().of.ring_byte, work.what.bytes);
    world()->happened();
    world()->stir(at.port_.owner());
    if (work.kind != Kind::note || at.closed_) return Outcome::done;
    verbs::VerbsEvent event;
    event.kind = verbs::VerbsEvent::VerbsEventKind::note;
    event.user = at.user_;
    event.word = work.word;
    at.port_.tell(event);
    return Outcome::done;
}

SimulatedQueue::Outcome SimulatedQueue::read_there(Work& work, SimulatedQueue& at) {
    work.bytes.assign(reinterpret_cast<const char*>(work.what.address), work.what.bytes);
    if (work.kind == Kind::read) return Outcome::done;
    if (work.what.bytes != 8 || work.what.address % 8 != 0)
        fail_run("an atomic update by a device of memory that is not an aligned word");
    const uint64_t before = number_at(work.what.address);
    const uint64_t after = work.kind == Kind::add ? before + work.operand : before == work.compare ? work.operand : before;
    put_at(work.what.address, &after, sizeof after);
    world()->stir(at.port_.owner());
    return Outcome::done;
}

void SimulatedQueue::check_own(const Work& work) const {
    if (work.inlined || work.what.bytes == 0) return;
    const auto found = port_.devices().memory.find(work.what.local);
    const auto from = reinterpret_cast<uint64_t>(work.what.memory);
    if (found == port_.devices().memory.end() || found->second.by != &port_ || !found->second.holds(from, work.what.bytes))
        fail_run("rank %u: a work request would %s memory that is not registered (any more) (%u bytes%s%s%s)",
                 port_.owner().rank, work.kind <= Kind::note ? "send from" : "write to", work.what.bytes,
                 work.what.quiet ? ", quiet" : "", closed_ ? ", the queue is closed" : "", broken_ ? ", broken" : "");
}

// Functions for errors and for the end of a queue.

// Puts the queue into the error state. Work in transit may or may not have been executed.
void SimulatedQueue::fail(const char* why) {
    if (broken_) return;
    broken_ = true;
    world()->note("queue broken", number_);
    port_.say(why);
    verbs::VerbsEvent event;
    event.kind = verbs::VerbsEvent::VerbsEventKind::broken;
    event.status = verbs::WorkStatus::broken;
    event.user = user_;
    if (!closed_) port_.tell(event);
    for (const Work& work : std::exchange(works_, {}))
        if (work.kind != Kind::frame) tell_done(work, verbs::WorkStatus::broken);
    // A closed queue has no user and can end now. It ends in a separate event, because its port may be the caller.
    if (closed_) later(port_.devices().world().now, &SimulatedQueue::end);
}

void SimulatedQueue::end() { port_.end(*this); }

void SimulatedQueue::close(bool linger) {
    if (closed_) fail_run("a connection's queue is closed twice");
    port_.forget(user_);
    closed_ = true;
    if (linger && peer_ != 0 && !broken_ && !port_.gone() && !works_.empty()) return;
    for (const Work& work : std::exchange(works_, {}))
        if (work.kind != Kind::frame) tell_done(work, verbs::WorkStatus::broken);
    port_.end(*this);
    world()->pass(prices().call);
}

}  // namespace starling::simulation
