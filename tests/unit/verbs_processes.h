// InfiniBand between the processes of one test (message_team.h). Datagrams and frames travel through shared memory; RDMA reads and writes
// use the kernel's access to other processes' memory. The test decides which faults occur.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "transport/verbs/plugin.h"

namespace starling::verbs::processes {

inline constexpr uint32_t kProcesses = 8, kQueues = 4096, kKeys = 65536, kFrame = 4096, kRing = 256;
inline constexpr uint32_t kFirstQueue = 2;  ///< number of process 0's datagram queue; devices reserve smaller ones

struct Shared {
    struct Packet {
        uint32_t to_queue, bytes, from;  ///< receiving queue (0: the packet is a datagram); payload length; sender
        bool note;                       ///< whether the payload is the immediate word of an RDMA write
        std::byte data[kFrame];
    };
    struct Inbox {
        pthread_mutex_t mutex;
        int event;
        uint32_t head, tail;  ///< positions of the oldest packet, and after the newest
        Packet ring[kRing];
    };
    struct QueueState {
        /// Number of the owning process + 1; number of the connected queue of the peer, 0 if not connected or closed.
        std::atomic<uint32_t> process, peer;
    };
    struct Key {
        std::atomic<pid_t> owner;
        uint64_t begin, bytes;
    };
    std::atomic<uint32_t> processes, queues{1}, keys{1};
    std::atomic<uint64_t> frames, transfers;
    std::atomic<uint64_t>
        breaks_after;  ///< a queue breaks at every n-th frame or transfer, counted over all queues; 0: none breaks
    std::atomic<uint64_t> counted;
    std::atomic<bool> refuse_memory, refuse_queues;
    std::atomic<bool> closed_for_queues;  ///< whether queues are created but carry nothing
    std::atomic<bool> hold_writes;        ///< whether devices postpone all RDMA writes
    Inbox inboxes[kProcesses];
    QueueState queue[kQueues];
    Key key[kKeys];
};
inline Shared* shared = nullptr;

/// Creates the shared memory. Call it before forking the processes.
inline void make() {
    void* const memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    shared = new (memory) Shared;
    for (Shared::Inbox& one : shared->inboxes) {
        pthread_mutexattr_t kind;
        pthread_mutexattr_init(&kind);
        pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
        pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&one.mutex, &kind);
        one.event = eventfd(0, EFD_NONBLOCK);
    }
}
inline void unmake() {
    for (Shared::Inbox& one : shared->inboxes) close(one.event);
    munmap(shared, sizeof(Shared));
    shared = nullptr;
}

class InboxLock {
  public:
    explicit InboxLock(Shared::Inbox& inbox) : inbox_(inbox) {
        if (pthread_mutex_lock(&inbox.mutex) == EOWNERDEAD) pthread_mutex_consistent(&inbox.mutex);
    }
    ~InboxLock() { pthread_mutex_unlock(&inbox_.mutex); }

  private:
    Shared::Inbox& inbox_;
};

class Port;

class Queue final : public verbs::Queue {
  public:
    Queue(Port& port, void* user, uint32_t number) : port(port), user(user), number(number) {}
    QueueAddress address() const override;
    bool connect(const QueueAddress& peer) override {
        to = peer.queue;
        shared->queue[number].peer.store(to);
        return true;
    }
    WorkStatus send(const iovec* parts, int count) override;
    WorkStatus write(const Transfer& what) override { return move(what, true); }
    WorkStatus write_with_note(const Transfer& what, uint32_t word) override { return move(what, true, &word); }
    WorkStatus read(const Transfer& what) override { return move(what, false); }
    WorkStatus fetch_add(const Transfer&, uint64_t) override { return WorkStatus::broken; }
    WorkStatus compare_swap(const Transfer&, uint64_t, uint64_t) override { return WorkStatus::broken; }
    void close(bool linger) override;
    bool answers() const { return to != 0 && shared->queue[to].peer.load() == number && !shared->closed_for_queues; }

    Port& port;
    void* const user;
    const uint32_t number;
    uint32_t to = 0;
    bool broken = false, wants_room = false;

  private:
    WorkStatus move(const Transfer& what, bool write, const uint32_t* note = nullptr);
    bool breaks();
};

class Port final : public verbs::Port {
  public:
    Port() : slot(shared->processes++) {
        std::strcpy(facts_.device, "test0");
        facts_.port = 1;
        facts_.active = true;
        facts_.most_queues = 1024;
        facts_.most_registered = UINT64_MAX;
        facts_.inline_bytes = 64;
        facts_.mtu = kFrame;
    }
    const PortFacts& facts() const override { return facts_; }
    VerbsAddress address() const override {
        VerbsAddress all;
        all.gid[15] = static_cast<uint8_t>(slot + 1);
        all.queue = slot + kFirstQueue;
        all.key = 7;
        all.mtu_log = 12;
        return all;
    }
    uint32_t datagram_limit() const override { return kFrame; }
    uint32_t frame_limit() const override { return kFrame; }
    WorkStatus send(const VerbsAddress& to, const iovec* parts, int count) override {
        // A datagram for which the ring has no room is lost, as on a network.
        put(to.queue - kFirstQueue, 0, parts, count);
        return WorkStatus::done;
    }
    verbs::Queue* make_queue(void* user) override {
        const uint32_t number = shared->queues++;
        if (shared->refuse_queues || number >= kQueues) return nullptr;
        shared->queue[number].process.store(slot + 1);
        queues_.push_back(std::make_unique<Queue>(*this, user, number));
        return queues_.back().get();
    }
    PortMembership* join(const uint8_t*) override { return nullptr; }
    bool enroll(void* memory, uint64_t bytes, bool, Memory& out) override {
        const uint32_t key = shared->keys++;
        if (shared->refuse_memory || key >= kKeys) return false;
        shared->key[key].begin = reinterpret_cast<uint64_t>(memory);
        shared->key[key].bytes = bytes;
        shared->key[key].owner.store(getpid());
        out = {key, key, nullptr};
        registered_ += bytes;
        return true;
    }
    void dismiss(Memory& memory) override {
        shared->key[memory.local].owner.store(0);
        registered_ -= shared->key[memory.local].bytes;
    }
    int poll(VerbsEvent* out, int most) override {
        uint64_t drained;
        (void)!::read(inbox().event, &drained, sizeof drained);
        for (auto& queue : queues_) make_room(*queue);
        int count = 0;
        for (; count < most && !events_.empty(); ++count) {
            out[count] = events_.front();
            events_.pop_front();
        }
        while (count < most && take(out[count])) ++count;
        return count;
    }
    void return_buffer(const VerbsEvent& event) override {
        std::erase_if(lent_, [&](auto& one) { return one.get() == event.buffer; });
    }
    int wait_fd() const override { return shared->inboxes[slot].event; }
    bool arm() override {
        const InboxLock lock(inbox());
        return events_.empty() && inbox().head == inbox().tail;
    }
    PortCounters counters() const override {
        PortCounters all;
        all.registered_bytes = registered_;
        all.queues = queues_.size();
        return all;
    }
    const char* problem() const override { return "refused by the test"; }
    void close() override { delete this; }

    /// Puts a packet into another process's ring. Returns false, without effect, if the ring has no room. Executes `write`, the RDMA write
    /// of which the packet is the notice, before the packet becomes visible.
    bool put(uint32_t process, uint32_t to_queue, const iovec* parts, int count, const std::function<void()>* write = nullptr) {
        if (process >= kProcesses) return true;
        Shared::Inbox& there = shared->inboxes[process];
        {
            const InboxLock lock(there);
            if (there.tail - there.head == kRing) return false;
            if (write) (*write)();
            Shared::Packet& packet = there.ring[there.tail++ % kRing];
            packet = {to_queue, 0, slot, write != nullptr, {}};
            for (int i = 0; i < count; packet.bytes += static_cast<uint32_t>(parts[i++].iov_len))
                std::memcpy(packet.data + packet.bytes, parts[i].iov_base, parts[i].iov_len);
        }
        const uint64_t one = 1;
        (void)!::write(there.event, &one, sizeof one);
        return true;
    }
    void tell(const VerbsEvent& event) {
        events_.push_back(event);
        const uint64_t one = 1;
        (void)!::write(inbox().event, &one, sizeof one);
    }
    void forget(Queue& queue) {
        std::erase_if(events_, [&](const VerbsEvent& event) { return event.user == queue.user; });
        std::erase_if(queues_, [&](auto& one) { return one.get() == &queue; });
    }

    const uint32_t slot;

  private:
    Shared::Inbox& inbox() const { return shared->inboxes[slot]; }
    void make_room(Queue& queue) {
        if (!queue.wants_room || queue.broken || shared->hold_writes) return;
        Shared::Inbox& there = shared->inboxes[shared->queue[queue.to].process.load() - 1];
        const InboxLock lock(there);
        if (there.tail - there.head > kRing / 2) return;
        queue.wants_room = false;
        VerbsEvent event;
        event.kind = VerbsEvent::VerbsEventKind::room;
        event.user = queue.user;
        events_.push_back(event);
    }
    /// Takes the next packet; returns false if there is none.
    bool take(VerbsEvent& out) {
        for (;;) {
            auto copy = std::make_unique<uint64_t[]>(kFrame / 8);
            uint32_t to = 0, from = 0;
            bool note = false;
            {
                const InboxLock lock(inbox());
                if (inbox().head == inbox().tail) return false;
                const Shared::Packet& packet = inbox().ring[inbox().head++ % kRing];
                std::memcpy(copy.get(), packet.data, packet.bytes);
                to = packet.to_queue, from = packet.from, note = packet.note;
                out = VerbsEvent{};
                out.bytes = packet.bytes;
            }
            if (to != 0) {
                const auto queue = std::find_if(queues_.begin(), queues_.end(), [&](auto& one) { return one->number == to; });
                if (queue == queues_.end() || (*queue)->broken) continue;
                out.kind = note ? VerbsEvent::VerbsEventKind::note : VerbsEvent::VerbsEventKind::frame;
                out.user = (*queue)->user;
                if (note) std::memcpy(&out.word, copy.get(), sizeof out.word);
                if (note) return true;
            } else {
                out.kind = VerbsEvent::VerbsEventKind::datagram;
                out.source_queue = from + kFirstQueue;
                out.gid[15] = static_cast<uint8_t>(from + 1);
            }
            out.data = reinterpret_cast<std::byte*>(copy.get());
            out.buffer = copy.get();
            lent_.push_back(std::move(copy));
            return true;
        }
    }

    PortFacts facts_;
    uint64_t registered_ = 0;
    std::deque<VerbsEvent> events_;
    std::vector<std::unique_ptr<Queue>> queues_;
    std::vector<std::unique_ptr<uint64_t[]>> lent_;
};

inline QueueAddress Queue::address() const {
    QueueAddress all;
    all.gid[15] = static_cast<uint8_t>(port.slot + 1);
    all.queue = number;
    return all;
}

/// Returns whether this queue is broken or breaks now.
inline bool Queue::breaks() {
    const uint64_t after = shared->breaks_after.load();
    if (broken) return true;
    const bool turn = after != 0 && ++shared->counted % after == 0;
    if (!turn && answers()) return false;
    broken = true;
    shared->queue[number].peer.store(0);
    VerbsEvent event;
    event.kind = VerbsEvent::VerbsEventKind::broken;
    event.user = user;
    port.tell(event);
    return true;
}

inline WorkStatus Queue::send(const iovec* parts, int count) {
    if (to == 0 || breaks()) return WorkStatus::broken;
    if (!port.put(shared->queue[to].process.load() - 1, to, parts, count)) {
        wants_room = true;
        return WorkStatus::busy;
    }
    ++shared->frames;
    return WorkStatus::done;
}

inline WorkStatus Queue::move(const Transfer& what, bool write, const uint32_t* note) {
    if (to == 0 || breaks()) return WorkStatus::broken;
    if (write && shared->hold_writes) {
        wants_room = true;
        return WorkStatus::busy;
    }
    const Shared::Key& key = shared->key[what.remote];
    const pid_t owner = key.owner.load();
    // The last word first: no order is guaranteed in which the words of a write become visible.
    constexpr size_t kWord = sizeof(uint64_t);
    const size_t front = what.bytes > kWord ? what.bytes - kWord : 0, back = what.bytes - front;
    const auto at = [](auto* memory, size_t offset, size_t bytes) { return iovec{const_cast<char*>(memory) + offset, bytes}; };
    const iovec near[] = {at(static_cast<const char*>(what.memory), front, back),
                          at(static_cast<const char*>(what.memory), 0, front)};
    const iovec far[] = {at(reinterpret_cast<char*>(what.address), front, back),
                         at(reinterpret_cast<char*>(what.address), 0, front)};
    const bool fits = what.address >= key.begin && what.address + what.bytes <= key.begin + key.bytes;
    ssize_t moved = -1;
    const std::function<void()> carry_out = [&] {
        if (what.bytes == 0) moved = 0;
        if (what.bytes == 0 || owner == 0 || !fits) return;
        moved = write ? process_vm_writev(owner, near, 2, far, 2, 0) : process_vm_readv(owner, near, 2, far, 2, 0);
    };
    iovec word{const_cast<uint32_t*>(note), sizeof *note};
    if (!note) carry_out();
    if (note && !port.put(shared->queue[to].process.load() - 1, to, &word, 1, &carry_out)) {
        wants_room = true;
        return WorkStatus::busy;
    }
    ++shared->transfers;
    VerbsEvent event;
    event.kind = VerbsEvent::VerbsEventKind::done;
    event.user = user;
    event.token = what.token;
    event.status = moved == static_cast<ssize_t>(what.bytes) ? WorkStatus::done : WorkStatus::broken;
    if (!what.quiet || event.status != WorkStatus::done) port.tell(event);
    if (event.status == WorkStatus::done) return WorkStatus::done;
    to = 0;  // disconnects the queue pair, as a device does for a wrong rkey
    (void)breaks();
    return WorkStatus::done;
}

// There is nothing to linger for, because everything sent is already in the peer's ring.
inline void Queue::close(bool) {
    shared->queue[number].peer.store(0);
    port.forget(*this);
}

inline int list(PortFacts* out, int most, const DeviceOptions*) {
    if (most > 0) {
        out[0] = PortFacts{};
        std::strcpy(out[0].device, "test0");
        out[0].port = 1;
        out[0].active = true;
    }
    return 1;
}
inline verbs::Port* open(const PortFacts*, const DeviceOptions*, char*, size_t) { return new Port; }

inline constexpr Plugin kPlugin{kPluginVersion, list, open};

}  // namespace starling::verbs::processes
