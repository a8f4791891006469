// The node stage of a communicator.
#pragma once

#include <memory>
#include <vector>

#include "base/copy.h"
#include "collective/exchange.h"
#include "collective/label.h"
#include "collective/node_lender.h"
#include "collective/node_stage.h"
#include "comm/comm.h"
#include "job/doorbell.h"
#include "progress/idle.h"
#include "transport/shm/outbox.h"

namespace starling::collective {

/// How processes of one machine see each other's words: through the engine, which keeps other communication
/// going and notices jobs that are gone.
class EngineSync {
  public:
    explicit EngineSync(int me) : me_(me) {}

    /// Adds the next participant; false if its job is gone.
    bool add_participant(const link::Process& process);

    CopyPath copies;                                   ///< into what all read
    CopyPath::Into into_room = CopyPath::Into::again;  ///< the room that was given last
    std::unique_ptr<NodeLender> lender;

    /// What an operation says of itself when it waits: the function that is called now, set by who calls; the rest once.
    struct Tells {
        const char* function = nullptr;
        message::Channel* channel = nullptr;
        const Exchange* exchange = nullptr;
        std::byte* area = nullptr;
        bool part = false;  ///< of an operation over several hosts, which has its tag already
    } tells;
    Label label() const {
        const Exchange& exchange = *tells.exchange;
        return {tells.function, tells.channel, exchange.calls() + (tells.part ? 0 : 1), exchange.last_tag()};
    }

    uint32_t load(const std::atomic<uint32_t>& word) const { return word.load(); }
    void store(std::atomic<uint32_t>& word, uint32_t value) const { word.store(value, std::memory_order_release); }
    void publish(std::atomic<uint32_t>& word, uint32_t value) const { word.store(value); }
    void fence() const { std::atomic_thread_fence(std::memory_order_seq_cst); }
    uint32_t add(std::atomic<uint32_t>& word, uint32_t value) const { return word.fetch_add(value); }

    std::byte* lend(uint32_t bytes, uint64_t number, uint32_t finished, uint32_t& place) {
        std::byte* room = lends_ ? lender->lend(bytes, number, finished, place) : nullptr;
        into_room = room ? CopyPath::Into::rotation : CopyPath::Into::again;
        return room;
    }
    std::byte* lent(int participant, uint32_t place) const {
        return outboxes_[static_cast<size_t>(participant)] + (place - 1) % shm::kOutboxBytes;
    }
    /// When all participants are known.
    void start_lending(std::byte* area, int64_t offset, bool leads);

    void wake(int participant) const {
        job::Doorbell* doorbell = doorbells_[static_cast<size_t>(participant)];
        if (doorbell->sleeping.load() != 0) [[unlikely]]
            job::ring(*doorbell);
    }
    void wake_all() const {
        for (int i = 0; i < static_cast<int>(doorbells_.size()); ++i)
            if (i != me_) wake(i);
    }

    template <class Condition>
    bool wait(Condition condition, const NodeWait& what) const {
        // Most partners are here within a fraction of a microsecond, or not for long; one that shares this
        // core will not come before we let go.
        for (int i = progress::core_is_crowded() ? kSpins - 1 : 0; i < kSpins; ++i) {
            if (condition()) return true;
            __builtin_ia32_pause();
        }
        return wait_long([](void* c) { return (*static_cast<Condition*>(c))(); }, &condition, what);
    }

  private:
    static constexpr int kSpins = 30;
    struct Waiting;
    bool wait_long(bool (*condition)(void*), void* argument, const NodeWait& what) const;
    void tell(const NodeWait& what, progress::Teller& teller) const;

    int me_;
    bool lends_ = false;
    std::vector<job::Doorbell*> doorbells_;
    std::vector<std::byte*> outboxes_;
    std::vector<link::Process> participants_;
    std::vector<const link::Job*> other_jobs_;
    std::vector<link::Process> mortals_;  ///< participants whose jobs go on without them
};

using Node = NodeStage<EngineSync>;

/// Holds a communicator's node stage: of all its members if they share a host, else of those on this host.
class NodeOwner {
  public:
    NodeOwner() = default;
    NodeOwner(const NodeOwner&) = delete;
    ~NodeOwner();

    /// The node stage for a blocking collective: all members call this at the same collective. It is made
    /// at the second call (for the world at the first); null before, and where there is none.
    Node* get(comm::Comm& comm, Exchange& exchange);

  private:
    void make(comm::Comm& comm, Exchange& exchange, const std::vector<int>& members, int me);

    std::unique_ptr<Node> node_;
    int calls_ = 0;
    bool tried_ = false;
};

}  // namespace starling::collective
