// Creates and owns the shared-memory stage of a communicator.
#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "base/copy.h"
#include "base/list.h"
#include "collective/core/exchange.h"
#include "collective/core/operation_label.h"
#include "collective/core/stage_meter.h"
#include "collective/core/view.h"
#include "collective/shm/outbox_blocks.h"
#include "collective/shm/stage.h"
#include "comm/comm.h"
#include "job/doorbell.h"
#include "link/host_memory.h"
#include "progress/blocking_wait.h"
#include "progress/flag_wait.h"

namespace starling::collective {

/// Accesses a stage's shared words, waits for them and wakes their readers, between processes of one machine. Waits use the progress
/// engine, so that other communication proceeds and ended jobs are noticed.
class EngineSync {
    /// An operation that waits for other participants.
    struct AwaitedOperation {
        ListHook hook;
        const NodeWait what;
        const std::variant<NodeLayout, LaneLayout> layout;
    };

  public:
    explicit EngineSync(int me) : me_(me), awaited_(std::make_unique<List<AwaitedOperation, &AwaitedOperation::hook>>()) {}
    /// Returns a new EngineSync for the same participants as this one.
    EngineSync same() const;

    /// Adds the participant with the next number; returns false if its job has ended.
    bool add_participant(const link::Process& process);

    CopyPath copies;  ///< copy method for data that all participants read
    CopyPath::CopyDestination into_room =
        CopyPath::CopyDestination::again;  ///< destination kind (base/copy.h) of the buffer that allocate() returned last
    std::unique_ptr<NodeLender> lender;

    /// The communicator whose operation waits, for wait reports.
    struct Tells {
        message::MatchContext* channel = nullptr;
        const Exchange* exchange = nullptr;
        std::byte* area = nullptr;
    } reports;
    /// Reports the collective call that waits, which is the communicator's last one.
    void report_call(progress::WaitReporter& teller) const {
        teller.in_collective(reports.channel->context(), reports.exchange->calls());
    }
    /// Reports the participants for which the current operation waits; with several operations, those of the first.
    void report_awaited(progress::WaitReporter& teller) const {
        if (const AwaitedOperation* first = awaited_->front())
            std::visit([&](const auto& layout) { report_missing(first->what, layout, teller); }, first->layout);
    }

    uint32_t load(const std::atomic<uint32_t>& word) const { return word.load(); }
    void store(std::atomic<uint32_t>& word, uint32_t value) const { word.store(value, std::memory_order_release); }
    void publish(std::atomic<uint32_t>& word, uint32_t value) const { word.store(value); }
    void fence() const { std::atomic_thread_fence(std::memory_order_seq_cst); }
    uint32_t add(std::atomic<uint32_t>& word, uint32_t value) const { return word.fetch_add(value); }

    void pass(uint64_t number, uint32_t finished) { lender->pass(number, finished); }
    std::byte* allocate(uint32_t bytes, uint64_t number, uint32_t finished, uint32_t& place) {
        std::byte* room = lends_ ? lender->allocate(bytes, number, finished, place) : nullptr;
        into_room = room ? CopyPath::CopyDestination::rotation : CopyPath::CopyDestination::again;
        return room;
    }
    std::byte* lent(int participant, uint32_t place) const {
        return outboxes_[static_cast<size_t>(participant)] + (place - 1) % link::kOutboxBytes;
    }
    /// Records that the communicator has members on other hosts, too. If one of those fails, the members here may take different paths,
    /// depending on when they learned of it. A wait for a living member might then never end, so it is abandoned.
    void watch_elsewhere() { watches_elsewhere_ = true; }
    /// Sets the stage's area; call it when all participants are known. `offset`: offset of the area, as in NodeLender's constructor.
    void use_area(std::byte* area, int64_t offset, AreaUse use);
    std::byte* area_at(int64_t offset) const;
    int participants() const { return static_cast<int>(participants_.size()); }
    int me() const { return me_; }

    bool is_revoked() const { return reports.channel->revoked(); }

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
        int polls = progress::kFlagSpins;
        if (progress::core_is_crowded()) polls = needs_yield(what) ? 1 : progress::kCrowdedFlagSpins;
        for (; polls > 0; --polls) {
            if (condition()) return true;
            __builtin_ia32_pause();
        }
        return wait_long([](void* c) { return (*static_cast<Condition*>(c))(); }, &condition, what);
    }

    /// Awaits a condition: `const bool holds = co_await until(...)`.
    template <class Condition>
    class ConditionAwaiter {
      public:
        ConditionAwaiter(EngineSync& sync, const Condition& condition, const NodeWait& what, const auto& layout)
            : sync_(sync), condition_(condition), awaited_{{}, what, layout} {}
        ConditionAwaiter(const ConditionAwaiter&) = delete;
        bool await_ready() { return here_ = condition_(); }
        void await_suspend(std::coroutine_handle<> waiter) {
            flag_.waiter = waiter;
            sync_.awaited_->push_back(&awaited_);
            progress::await_flags(flag_);
        }
        bool await_resume() {
            awaited_.hook.unlink();
            return here_;
        }

      private:
        bool poll_wait() { return (here_ = condition_()) || sync_.has_member_ended(); }
        EngineSync& sync_;
        const Condition& condition_;
        AwaitedOperation awaited_;
        bool here_ = false;
        progress::FlagWait flag_{{}, [](void* until) { return static_cast<ConditionAwaiter*>(until)->poll_wait(); }, this};
    };
    template <class Condition, class Layout>
    ConditionAwaiter<Condition> until(const Condition& condition, const NodeWait& what, const Layout& layout) {
        return ConditionAwaiter<Condition>(*this, condition, what, layout);
    }

  private:
    struct LongWait;
    /// Returns whether a wait on a crowded core should yield at once, see NodeWait::needs_yield(). With many participants each core has
    /// several of them, and the search would take as long as a yield, so the answer is always true.
    bool needs_yield(const NodeWait& what) const;
    bool wait_long(bool (*condition)(void*), void* argument, const NodeWait& what) const;
    bool has_member_ended() const {
        return is_revoked() || ((!other_jobs_.empty() || !mortals_.empty() || watches_elsewhere_) && find_ended());
    }
    bool find_ended() const;
    template <class Layout>
    void report_missing(const NodeWait& what, const Layout& layout, progress::WaitReporter& teller) const;

    int me_;
    std::unique_ptr<List<AwaitedOperation, &AwaitedOperation::hook>> awaited_;
    bool lends_ = false;
    bool watches_elsewhere_ = false;
    std::vector<job::Doorbell*> doorbells_;
    std::vector<std::byte*> outboxes_;
    std::vector<link::Process> participants_;
    std::vector<const link::Job*> other_jobs_;
    std::vector<link::Process> mortals_;  ///< participants whose jobs continue when they die
};

using EngineStage = NodeStage<EngineSync>;

/// Owns a communicator's shared-memory stage: one for all its members if they share a host, else one for those on this host. It is created
/// at the second collective call, after an agreement by messages; for the world at the first call, without messages. A job that continues
/// after failures creates it at the first call.
class NodeOwner {
  public:
    NodeOwner() = default;
    NodeOwner(const NodeOwner&) = delete;
    ~NodeOwner();

    /// Returns the stage; null if there is none (yet).
    EngineStage* node() const { return node_.get(); }
    /// Returns the stage if it covers all members, so that it can run whole operations; else null.
    EngineStage* node_of_all() const { return is_part_ ? nullptr : node_.get(); }
    /// Returns the stage if it covers only this host, and the communicator has several hosts; else null.
    EngineStage* node_of_host() const { return is_part_ ? node_.get() : nullptr; }
    /// The queue of the awaited operations that use the stage.
    OperationQueue& turns() { return turns_; }
    /// Blocks until the queue is empty.
    void wait_for_queue();
    /// The queue of the calls that wait until it is known whether there is a stage.
    OperationQueue& callers() { return callers_; }
    /// Returns whether node() is final for a call that is made now; each call asks once. If it is not final, the call joins callers() and
    /// awaits, in its turn, the task that make() returned to the first call.
    bool is_known(const comm::Comm& comm) {
        if (tried_ && callers_.none()) [[likely]]
            return true;
        return !tried_ && &comm != comm::world() && ++calls_ < kCallsWithout && !needs_stage_at_once(comm);
    }
    /// Ends the use of the stage because the communicator was revoked: is_known() returns false from now on.
    void revoke() {
        tried_ = false;
        calls_ = kCallsWithout;
    }
    /// Creates the stage; all members call this at the same call. The task returned to the first caller completes when the members have
    /// agreed, at once if there is nothing to agree on; later callers get a completed task. `exchange`: the communicator's, or that of one
    /// of its persistent operations, which the stage then serves alone.
    Task make(comm::Comm& comm, Exchange& exchange);

    /// Allocates an area for a stage of another communicator with the same members. The stage only runs barriers and operations on data
    /// that fits into slots (AreaUse::meetings). Returns the area's offset at the leader, which must send it to the others; kNoArea: no
    /// space, or this process is not the leader.
    int64_t allocate_next() const;
    /// Creates this communicator's stage in the area that allocate_next() of `first` has allocated, for use from its first call on. All
    /// members call this, or none.
    void create_as(const NodeOwner& first, comm::Comm& comm, Exchange& exchange, int64_t offset);
    /// Retires the area that allocate_next() has allocated, because no stage is created in it. All members call this.
    void abandon_next(int64_t offset) const;

    /// Returns the choices between the stage and messages for long calls; null unless the stage's only participants are two processes.
    StageMeter* meter() const { return meter_.get(); }

    /// For a neighborhood, one entry per source: the index at which that source stores this process's block. Empty until the members have
    /// exchanged them.
    std::optional<std::vector<int>> places;

  private:
    /// Returns whether the first call already needs the stage: in a job that continues after failures. By messages, a member that dies right
    /// after a call would let it fail on members that are still in it. On the stage they see that it had arrived.
    static bool needs_stage_at_once(const comm::Comm& comm);
    Task make_of(comm::Comm& comm, Exchange& exchange, std::vector<int> members, int me, View all);
    void start(EngineSync&& sync, comm::Comm& comm, Exchange& exchange, uint32_t first);

    static constexpr int kCallsWithout = 2;  ///< number of the first call that has the stage

    std::unique_ptr<EngineStage> node_;
    std::unique_ptr<StageMeter> meter_;
    OperationQueue turns_, callers_;
    int calls_ = 0;
    bool tried_ = false, is_part_ = false;
};

}  // namespace starling::collective
