// In-memory ports (transport/verbs/device.h) for tests of their users. Work that was posted is carried out only when the test calls step()
// or run(), so a test can act between any two steps.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transport/verbs/device.h"

namespace starling::verbs::queues {

class FabricPort;

class FabricQueue final : public Queue {
  public:
    FabricQueue(FabricPort& port, void* user, uint32_t number) : port(port), user(user), number(number) {}

    QueueAddress address() const override;
    bool connect(const QueueAddress& peer) override;
    WorkStatus send(const iovec* parts, int count) override;
    WorkStatus write(const Transfer& what) override { return start({Work::Kind::write, what, 0, 0, {}}); }
    WorkStatus write_with_note(const Transfer& what, uint32_t word) override {
        return start({Work::Kind::note, what, word, 0, {}});
    }
    WorkStatus read(const Transfer& what) override { return start({Work::Kind::read, what, 0, 0, {}}); }
    WorkStatus fetch_add(const Transfer& what, uint64_t operand) override {
        return start({Work::Kind::add, what, operand, 0, {}});
    }
    WorkStatus compare_swap(const Transfer& what, uint64_t compare, uint64_t operand) override {
        return start({Work::Kind::swap, what, operand, compare, {}});
    }
    void close(bool linger) override;

    /// Returns whether the queue pair no longer receives. A lingering one still receives until its posted work is done.
    bool gone() const { return closing && work.empty(); }
    /// Puts the queue into the error state, as a device does.
    void break_now();

    struct Work {
        enum class Kind { frame, write, note, read, add, swap } kind;
        Transfer what;
        uint64_t operand, compare;
        std::vector<std::byte> frame;
    };
    FabricPort& port;
    void* const user;
    const uint32_t number;
    QueueAddress peer;
    bool connected = false, broken = false, closing = false, told_busy = false;
    std::deque<Work> work;

  private:
    WorkStatus start(Work one);
};

/// The ports that can reach each other, and the memory registered with them.
struct Fabric {
    std::map<uint8_t, FabricPort*> ports;  ///< ports of the fabric, by the last byte of their GID
    uint32_t next_queue = 100, next_key = 1;
    size_t depth = 4;  ///< number of work requests that a queue accepts
    uint32_t frame = 4096;
    uint64_t frames = 0, transfers = 0;

    FabricQueue* find(const QueueAddress& address) const;
};

class FabricPort : public Port {
  public:
    FabricPort(Fabric& fabric, uint8_t id) : fabric(fabric), id(id) {
        std::snprintf(facts_.device, sizeof facts_.device, "fabric%u", id);
        facts_.active = true;
        facts_.inline_bytes = 64;
        facts_.most_queues = 64;
        facts_.most_registered = UINT64_MAX;
        fabric.ports[id] = this;
    }
    virtual ~FabricPort() { fabric.ports.erase(id); }

    const PortFacts& facts() const override { return facts_; }
    PortFacts& set() { return facts_; }
    VerbsAddress address() const override { return {}; }
    uint32_t datagram_limit() const override { return 4096; }
    uint32_t frame_limit() const override { return fabric.frame; }
    WorkStatus send(const VerbsAddress&, const iovec*, int) override { return WorkStatus::broken; }
    Queue* make_queue(void* user) override {
        if (refuse_queues) return nullptr;
        queues.push_back(std::make_unique<FabricQueue>(*this, user, fabric.next_queue++));
        return queues.back().get();
    }
    PortMembership* join(const uint8_t*) override { return nullptr; }
    bool enroll(void* memory, uint64_t bytes, bool remote, Memory& out) override {
        if (refuse_memory || registered + bytes > most_registered) return false;
        const uint32_t key = fabric.next_key++;
        memories[key] = {static_cast<std::byte*>(memory), bytes, remote};
        registered += bytes;
        out = {key, key, nullptr};
        return true;
    }
    void dismiss(Memory& memory) override {
        registered -= memories.at(memory.local).bytes;
        memories.erase(memory.local);
    }
    int poll(VerbsEvent* out, int most) override {
        int count = 0;
        for (; count < most && !events.empty(); ++count) {
            out[count] = events.front().event;
            if (out[count].kind == VerbsEvent::VerbsEventKind::frame) {
                lent.push_back(std::move(events.front().data));
                out[count].data = reinterpret_cast<std::byte*>(lent.back().data());
            }
            events.pop_front();
        }
        return count;
    }
    void return_buffer(const VerbsEvent& event) override {
        std::erase_if(lent, [&](auto& data) { return reinterpret_cast<std::byte*>(data.data()) == event.data; });
    }
    int wait_fd() const override { return -1; }
    bool arm() override { return events.empty(); }
    PortCounters counters() const override {
        PortCounters all;
        all.registered_bytes = registered;
        all.queues = static_cast<uint64_t>(std::count_if(queues.begin(), queues.end(), [](auto& q) { return !q->closing; }));
        return all;
    }
    const char* problem() const override { return "refused by the test"; }
    void close() override {}

    /// Returns the memory at `address` if the key allows access to the whole range, by the device or, if `remote`, by a peer; otherwise
    /// null.
    std::byte* reach(uint32_t key, uint64_t address, uint64_t bytes, bool remote) {
        const auto found = memories.find(key);
        if (found == memories.end() || (remote && !found->second.remote)) return nullptr;
        const auto begin = reinterpret_cast<uint64_t>(found->second.begin);
        if (address < begin || bytes > found->second.bytes || address - begin > found->second.bytes - bytes) return nullptr;
        return reinterpret_cast<std::byte*>(address);
    }
    void tell(VerbsEvent event, const std::vector<std::byte>& data = {}) {
        std::vector<uint64_t> copy((data.size() + 7) / 8);
        if (!data.empty()) std::memcpy(copy.data(), data.data(), data.size());
        event.bytes = static_cast<uint32_t>(data.size());
        events.push_back({event, std::move(copy)});
    }

    /// Carries out the queue's oldest work request; returns whether there was one.
    bool step(FabricQueue& queue) {
        if (queue.work.empty() || queue.broken) return false;
        const FabricQueue::Work one = std::move(queue.work.front());
        queue.work.pop_front();
        FabricQueue* const there = queue.connected ? fabric.find(queue.peer) : nullptr;
        const bool answers = there && there->connected && !there->broken && there->peer.queue == queue.number;
        if (!answers || !carry_out(queue, *there, one)) {
            queue.work.push_front(one);
            queue.break_now();
            return true;
        }
        if (queue.told_busy && !queue.closing) {
            queue.told_busy = false;
            VerbsEvent room;
            room.kind = VerbsEvent::VerbsEventKind::room;
            room.user = queue.user;
            tell(room);
        }
        return true;
    }
    bool carry_out(FabricQueue& queue, FabricQueue& there, const FabricQueue::Work& one) {
        using Kind = FabricQueue::Work::Kind;
        VerbsEvent event;
        event.user = there.user;
        if (one.kind == Kind::frame) {
            ++fabric.frames;
            event.kind = VerbsEvent::VerbsEventKind::frame;
            if (!there.closing) there.port.tell(event, one.frame);
            return true;
        }
        ++fabric.transfers;
        std::byte* const far = there.port.reach(one.what.remote, one.what.address, one.what.bytes, true);
        const bool writes = one.kind == Kind::write || one.kind == Kind::note;
        const bool is_inline = writes && one.what.bytes <= facts_.inline_bytes && one.what.local == 0;
        std::byte* const near =
            is_inline ? nullptr : reach(one.what.local, reinterpret_cast<uint64_t>(one.what.memory), one.what.bytes, false);
        if (one.what.bytes != 0 && (!far || (!near && !is_inline))) return false;
        uint64_t before = 0;
        if (one.what.bytes == 0) {
            if (!one.what.quiet && !queue.closing) done(one.what.token, WorkStatus::done);
            return true;
        }
        switch (one.kind) {
            case Kind::write:
            case Kind::note:
                std::memcpy(far, is_inline ? one.frame.data() : near, one.what.bytes);
                break;
            case Kind::read:
                std::memcpy(near, far, one.what.bytes);
                break;
            default:
                std::memcpy(&before, far, 8);
                const uint64_t after = one.kind == Kind::add   ? before + one.operand
                                       : before == one.compare ? one.operand
                                                               : before;
                std::memcpy(far, &after, 8);
                std::memcpy(near, &before, 8);
        }
        if (one.kind == Kind::note && !there.closing) {
            event.kind = VerbsEvent::VerbsEventKind::note;
            event.word = static_cast<uint32_t>(one.operand);
            there.port.tell(event);
        }
        if (!one.what.quiet && !queue.closing) done(one.what.token, WorkStatus::done);
        return true;
    }
    void done(uint64_t token, WorkStatus status) {
        VerbsEvent event;
        event.kind = VerbsEvent::VerbsEventKind::done;
        event.token = token;
        event.status = status;
        tell(event);
    }
    /// Carries out the work of all queues until none is left; returns whether there was any.
    bool run() {
        bool any = false;
        for (bool more = true; more;) {
            more = false;
            for (size_t i = 0; i < queues.size(); ++i) more |= step(*queues[i]);
            any |= more;
        }
        std::erase_if(queues, [](auto& queue) { return queue->closing && (queue->work.empty() || queue->broken); });
        return any;
    }

    struct Told {
        VerbsEvent event;
        std::vector<uint64_t> data;
    };
    struct Registered {
        std::byte* begin;
        uint64_t bytes;
        bool remote;
    };
    Fabric& fabric;
    const uint8_t id;
    bool refuse_queues = false, refuse_connects = false, refuse_memory = false;
    uint64_t registered = 0, most_registered = UINT64_MAX;
    std::vector<std::unique_ptr<FabricQueue>> queues;
    std::map<uint32_t, Registered> memories;
    std::deque<Told> events;
    std::vector<std::vector<uint64_t>> lent;

  private:
    PortFacts facts_;
};

inline QueueAddress FabricQueue::address() const {
    QueueAddress all;
    all.gid[15] = port.id;
    all.queue = number;
    all.first = 0xabcdef;
    all.mtu_log = 12;
    all.reads = 4;
    return all;
}

inline bool FabricQueue::connect(const QueueAddress& to) {
    if (port.refuse_connects) return false;
    peer = to;
    return connected = true;
}

inline WorkStatus FabricQueue::send(const iovec* parts, int count) {
    Work one{Work::Kind::frame, {}, 0, 0, {}};
    for (int i = 0; i < count; ++i) {
        const auto* const from = static_cast<const std::byte*>(parts[i].iov_base);
        one.frame.insert(one.frame.end(), from, from + parts[i].iov_len);
    }
    if (one.frame.size() > port.frame_limit()) return WorkStatus::too_long;
    return start(std::move(one));
}

inline WorkStatus FabricQueue::start(Work one) {
    if (broken || closing || !connected) return WorkStatus::broken;
    if (work.size() >= port.fabric.depth) {
        told_busy = true;
        return WorkStatus::busy;
    }
    const bool writes = one.kind == Work::Kind::write || one.kind == Work::Kind::note;
    if (writes && one.what.local == 0 && one.what.bytes <= port.facts().inline_bytes) {
        const auto* const from = static_cast<const std::byte*>(one.what.memory);
        one.frame.assign(from, from + one.what.bytes);
    }
    work.push_back(std::move(one));
    return WorkStatus::done;
}

inline void FabricQueue::break_now() {
    if (broken) return;
    broken = true;
    for (const Work& one : work)
        if (one.kind != Work::Kind::frame && !closing) port.done(one.what.token, WorkStatus::broken);
    work.clear();
    if (closing) return;
    VerbsEvent event;
    event.kind = VerbsEvent::VerbsEventKind::broken;
    event.user = user;
    port.tell(event);
}

inline void FabricQueue::close(bool linger) {
    // A lingering queue still sends its remaining frames from their buffers.
    for (const Work& one : work)
        if (one.kind != Work::Kind::frame && !linger) port.done(one.what.token, WorkStatus::broken);
    if (!linger) work.clear();
    std::erase_if(port.events, [&](const FabricPort::Told& told) { return told.event.user == user; });
    closing = true;
}

inline FabricQueue* Fabric::find(const QueueAddress& address) const {
    const auto port = ports.find(address.gid[15]);
    if (port == ports.end()) return nullptr;
    for (auto& queue : port->second->queues)
        if (queue->number == address.queue && !queue->gone()) return queue.get();
    return nullptr;
}

}  // namespace starling::verbs::queues
