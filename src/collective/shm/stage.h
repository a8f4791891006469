// The shared-memory stage: collective operations through memory that all participants share.
//
// Operations have the same numbers on all participants. A participant writes its operand to its slot (there are several, used in turn)
// or, as the root of a broadcast, to the next buffer of a ring. Then it writes the operation's number into the header. A buffer is reused
// only when every participant has finished the operation that used it last. For that, each participant publishes the number of the last
// operation that it has finished. A meeting (an operation that no participant leaves before all have entered) makes this check unnecessary:
// all have finished the operations before it.
//
// With few participants each polls every slot. With many they count arrivals: the last one does the work for all, writes the result and
// then one word on which all others wait. So each needs to be scheduled only once per operation, however many share a core.
//
// An operation is a plain object with phases (protocols.h), between which it waits. There are three drivers: run() blocks and has no frame;
// drive() is a coroutine; the lanes' drive() is a coroutine for several simultaneous operations (nonblocking_slots.h).
//
// Access to the shared words and waiting are a template parameter, so that tests can run all interleavings.
#pragma once

#include <cstdint>
#include <utility>

#include "collective/shm/nonblocking_slots.h"
#include "collective/shm/operation_queue.h"
#include "collective/shm/operation_step.h"
#include "message/revocation.h"

namespace starling::collective {

/// The state of the protocols over an area. `Sync` has:
///   uint32_t load(const std::atomic<uint32_t>&)          sequentially consistent
///   void store(std::atomic<uint32_t>&, uint32_t)         release
///   void publish(std::atomic<uint32_t>&, uint32_t)       sequentially consistent: a wake may follow
///   void fence()                                         gives earlier stores the effect of publish()
///   uint32_t add(std::atomic<uint32_t>&, uint32_t)       sequentially consistent; returns the old value
///   bool wait(condition, NodeWait)                       blocks until the condition holds; false if a participant has ended
///   Awaiter until(condition, NodeWait, layout)           awaitable wait(); the condition outlives it
///   void wake(int participant), void wake_all()          after publish or add: sleeping participants poll again
///   void pass(uint64_t number, uint32_t finished)        optional; called long before 32-bit numbers wrap, with the number of
///                                                        the next operation and of one that all have finished
///   std::byte* allocate(uint32_t bytes, uint64_t number, uint32_t finished, uint32_t& place)
///       allocates a buffer for operation `number` outside the area; it is reused when all participants have published in done() that they
///       have finished it; `finished`: the last operation known to be finished by all. Null if there is no space now.
///   const std::byte* lent(int participant, uint32_t place)                           the buffer at a place in a header
/// An operation returns an MPI error class. After an error from a wait the stage is broken, and every operation returns
/// MPI_ERR_PROC_ABORTED.
template <class Sync>
class NodeStage : public NodeStep<NodeStage<Sync>, NodeLayout> {
    using StageStep = NodeStep<NodeStage, NodeLayout>;
    using StageStep::few_, StageStep::has_next, StageStep::layout_, StageStep::me_, StageStep::n_, StageStep::sequence_;

  public:
    using StageStep::reached;

    /// `first`: initial value of the operation numbers in the area, see NodeLayout::clear().
    NodeStage(std::byte* base, int n, int me, Sync sync, uint32_t first = 0, int few = NodeLayout::kFew)
        : StageStep(NodeLayout(base, n), n, me, n <= few, first),
          sync_(std::move(sync)),
          finished_by_all_(first),
          noted_readers_at_(first),
          lanes_(*this, base, first) {
        publish_sequence();
    }
    NodeStage(const NodeStage&) = delete;

    Sync& sync() { return sync_; }
    const Sync& sync() const { return sync_; }
    /// Returns the lanes, for small simultaneous operations.
    NodeLanes<NodeStage>& lanes() { return lanes_; }

    /// Leaves the stage for good: publishes that this process has finished all operations, so that no participant waits for it.
    void leave() {
        if (broken_) return;
        sync_.publish(layout_.done(me_), sequence_ + kNever);
        lanes_.leave(kNever);
        broken_ = true;
    }
    bool broken() const { return broken_; }
    /// Ends the use of the stage because a participant has left; returns an error class.
    [[gnu::cold, gnu::noinline]] int gone() {
        leave();
        if constexpr (requires { sync_.is_revoked(); }) {
            if (sync_.is_revoked()) return message::why_revoked();
        }
        return fail(MPI_ERR_PROC_ABORTED,
                    "a member of the communicator has ended, so collective operations on the "
                    "communicator fail");
    }

    /// Runs an operation with all its pieces to its end. Blocks. All phases are inlined: calls would take a tenth of a small operation's
    /// time.
    template <class Operation>
    [[gnu::flatten]] int run(Operation& operation) {
        for (;;) {
            if (broken_) return gone();
            count();
            if (const uint32_t turns = operation.turns(*this); turns != 0 && !is_free(turns) && !wait_until_free(turns))
                return gone();
            if (!StageStep::find_room(operation, *this)) {
                sync_.wake_all();
                if (!wait_until_free(kRoomTurns)) return gone();
                StageStep::find_room(operation, *this);
            }
            if (!operation.put(*this) && !sync_.wait([&] { return operation.here(*this); }, operation.waits_for(*this)))
                return gone();
            int error = operation.take(*this);
            if (!has_next(operation, error)) return error;
        }
    }

    /// Returns a task that runs an operation like run(), but does not block. It begins when `given` is the first in the queue.
    template <class Operation>
    Task drive(QueueTurn given, Operation operation) {
        QueueTurn turn = std::move(given);
        co_await turn;
        for (;;) {
            if (broken_) co_return gone();
            count();
            uint32_t turns = operation.turns(*this);
            for (bool room = false; !room; turns = kRoomTurns) {
                const uint32_t wanted = sequence_ - turns;
                if (turns != 0 && !is_free(turns) && !all_done(wanted)) {
                    const NodeWait what{NodeWait::Who::readers, wanted, 0, n_};
                    const int error = co_await until_free(
                        layout_, sync_, [this, wanted] { return all_done(wanted); }, what);
                    if (error != MPI_SUCCESS) co_return gone();
                }
                room = StageStep::find_room(operation, *this);
                if (!room) sync_.wake_all();
            }
            if (!operation.put(*this)) {
                const auto ready = [&] { return operation.here(*this); };
                auto others = sync_.until(ready, operation.waits_for(*this), layout_);
                const bool here = co_await others;
                if (!here) co_return gone();
            }
            int error = operation.take(*this);
            if (!has_next(operation, error)) co_return error;
        }
    }

    // The functions below, with those of NodeStep, are the interface of the protocols.

    /// Returns a buffer for `bytes` of data, and sets the header's place. Returns null if all participants must first finish the operation
    /// before the last one.
    std::byte* own_room(NodeLayout::StageHeader& header, uint32_t bytes) {
        if (std::byte* room = sync_.allocate(bytes, number(), finished_by_all_, header.place)) return room;
        header.place = NodeLayout::kNowhere;
        return is_free(kRoomTurns) ? layout_.wide(me_, sequence_) : nullptr;
    }
    const std::byte* room_of(int i, const NodeLayout::StageHeader& header) const {
        return header.place == NodeLayout::kNowhere ? layout_.wide(i, sequence_) : sync_.lent(i, header.place);
    }

    static constexpr bool polls_at_once() { return true; }
    void read_nothing() { sync_.store(layout_.done(me_), sequence_); }
    void finish() {
        sync_.publish(layout_.done(me_), sequence_);
        if (sync_.load(layout_.done_waiters()) != 0) [[unlikely]]
            sync_.wake_all();
    }
    /// Records that every participant has finished the operations before this one, because a meeting has ended.
    void note_meeting() { finished_by_all_ = sequence_ - 1; }

    /// Records that this process has waited for all readers of its slot. Called at the end of an operation.
    void note_readers() {
        noted_readers_ = noted_readers_at_ + 1 == sequence_ ? noted_readers_ + 1 : 1;
        noted_readers_at_ = sequence_;
    }
    /// Returns whether the slot to be written is free, because the operations since its last use had the same readers. A reader that
    /// entered the last one had finished those before it.
    bool readers_are_through() const {
        return noted_readers_ >= NodeLayout::slot_turns(n_) && noted_readers_at_ + 1 == sequence_;
    }

  private:
    /// A distance between operation numbers that exceeds the distance between any two participants.
    static constexpr uint32_t kNever = 1u << 30;
    /// Number of pipeline buffers per participant, used in turn.
    static constexpr uint32_t kRoomTurns = 2;

    void count() {
        if (++sequence_ % kRenewEvery == 0) [[unlikely]]
            renew_all();
    }
    /// Renews this process's slots and its record of what the others have finished. Both may be as old as the last operation for which it
    /// wrote.
    [[gnu::cold, gnu::noinline]] void renew_all() {
        if (sequence_ == 0) ++wraps_;
        all_done(sequence_ - 1);
        for (uint32_t use = 0; use < NodeLayout::slot_turns(n_); ++use)
            renew(layout_.slot(me_, use), sync_, sequence_, finished_by_all_);
        noted_readers_ = 0;
        publish_sequence();
    }
    void publish_sequence() {
        if constexpr (requires { sync_.pass(number(), finished_by_all_); }) sync_.pass(number(), finished_by_all_);
    }
    uint64_t number() const { return uint64_t{wraps_} << 32 | sequence_; }

    /// Returns whether the next buffer is free in a rotation of `turns` buffers: every participant has finished the operation that used it
    /// last.
    bool is_free(uint32_t turns) const { return reached(finished_by_all_, sequence_ - turns); }
    bool all_done(uint32_t wanted) {
        finished_by_all_ = finished_by_all(layout_, sync_, n_, me_, sequence_ - 1);
        return reached(finished_by_all_, wanted);
    }
    [[gnu::noinline]] bool wait_until_free(uint32_t turns) {
        const uint32_t wanted = sequence_ - turns;
        if (all_done(wanted)) return true;
        sync_.add(layout_.done_waiters(), 1);
        const bool here =
            sync_.wait([this, wanted] { return all_done(wanted); }, NodeWait{NodeWait::Who::readers, wanted, 0, n_});
        sync_.add(layout_.done_waiters(), ~0u);
        return here;
    }

    Sync sync_;
    bool broken_ = false;
    uint32_t wraps_ = 0;
    uint32_t finished_by_all_;
    uint32_t noted_readers_ = 0;  ///< number of consecutive operations that ended with note_readers()
    uint32_t noted_readers_at_;   ///< number of the last operation that ended with note_readers()
    NodeLanes<NodeStage> lanes_;
};

}  // namespace starling::collective
