// The node stage: collective operations straight through memory that all participants share.
//
// Operations are numbered, by everyone alike. A participant writes its operand to its slot (there are two,
// used in turn) or, as the root of a broadcast, to the next buffer of a ring, then the number into the
// header. A buffer is written again only when everyone has finished the operation that used it last: each
// participant publishes the number of the last operation it has finished, but whoever has been at a meeting
// (an operation that all must have come to) knows without looking that everyone has finished what was
// before.
//
// With few participants everybody looks at everybody's slot. With many they count arrivals: the last one
// does the work for all, writes the result and then one word that all others wait for, so that each needs
// to run only once per operation, however many share a core.
//
// An operation is a plain object with phases (protocols.h); between them it waits. Drivers take it through these: run()
// blocks, and has no frame; drive() is a coroutine; and so is that of the lanes (nonblocking_slots.h), where several are under way at a
// time.
//
// How words are read, written and waited for is a parameter, so that tests can go through all
// interleavings.
#pragma once

#include <cstdint>
#include <utility>

#include "collective/shm/nonblocking_slots.h"
#include "collective/shm/operation_queue.h"
#include "collective/shm/operation_step.h"

namespace starling::collective {

/// The state of the protocols over an area. `Sync` has:
///   uint32_t load(const std::atomic<uint32_t>&)          sequentially consistent
///   void store(std::atomic<uint32_t>&, uint32_t)         release
///   void publish(std::atomic<uint32_t>&, uint32_t)       sequentially consistent: a wake may follow
///   void fence()                                         makes the stores before it published, so to speak
///   uint32_t add(std::atomic<uint32_t>&, uint32_t)       sequentially consistent; gives the old value
///   bool wait(condition, NodeWait)                       true when it holds; false if a participant is gone
///   Awaiter until(condition, NodeWait, layout)           the same, to be awaited; it is outlived by the condition
///   void wake(int participant), void wake_all()          after publish or add: whoever sleeps looks again
///   void pass(uint64_t number, uint32_t finished)        if it is there, now and then, long before numbers of 32 bits wrap: the
///                                                        next operation, and one that all have finished
///   std::byte* lend(uint32_t bytes, uint64_t number, uint32_t finished, uint32_t& place)
///       a room for operation `number` outside the area, used again when all have published in done() that they have
///       finished it; `finished`: the last one of which that is known. Null if there is none now.
///   const std::byte* lent(int participant, uint32_t place)                           what a place in a header means
/// An operation gives an MPI error class. After an error from a wait the stage is broken and every operation gives
/// MPI_ERR_PROC_ABORTED.
template <class Sync>
class NodeStage : public NodeStep<NodeStage<Sync>, NodeLayout> {
    using Step = NodeStep<NodeStage, NodeLayout>;
    using Step::few_, Step::has_next, Step::layout_, Step::me_, Step::n_, Step::sequence_;

  public:
    using Step::reached;

    /// `first`: what the numbers in the area begin with, see NodeLayout::clear().
    NodeStage(std::byte* base, int n, int me, Sync sync, uint32_t first = 0, int few = NodeLayout::kFew)
        : Step(NodeLayout(base, n), n, me, n <= few, first),
          sync_(std::move(sync)),
          finished_by_all_(first),
          met_readers_at_(first),
          lanes_(*this, base, first) {
        tell();
    }
    NodeStage(const NodeStage&) = delete;

    Sync& sync() { return sync_; }
    const Sync& sync() const { return sync_; }
    /// For small operations that are under way at a time.
    NodeLanes<NodeStage>& lanes() { return lanes_; }

    /// I shall never look again: nobody need wait for that, whatever operation I have come to.
    void leave() {
        if (broken_) return;
        sync_.publish(layout_.done(me_), sequence_ + kNever);
        lanes_.leave(kNever);
        broken_ = true;
    }
    bool broken() const { return broken_; }
    /// Leaves, since a participant has: an error class.
    [[gnu::cold, gnu::noinline]] int gone() {
        leave();
        return fail(MPI_ERR_PROC_ABORTED, "a member of the communicator is gone; collective operations on it fail");
    }

    /// Takes an operation, and the further pieces that it has, to its end. Blocks. All phases in one function: calls would
    /// be a tenth of what a small operation takes.
    template <class Operation>
    [[gnu::flatten]] int run(Operation& operation) {
        for (;;) {
            if (broken_) return gone();
            count();
            if (const uint32_t turns = operation.turns(*this); turns != 0 && !is_free(turns) && !wait_until_free(turns))
                return gone();
            if (!Step::find_room(operation, *this)) {
                sync_.wake_all();
                if (!wait_until_free(kRoomTurns)) return gone();
                Step::find_room(operation, *this);
            }
            if (!operation.put(*this) && !sync_.wait([&] { return operation.here(*this); }, operation.waits_for(*this)))
                return gone();
            int error = operation.take(*this);
            if (!has_next(operation, error)) return error;
        }
    }

    /// The same, awaited, when its turn has come.
    template <class Operation>
    Task drive(Turn given, Operation operation) {
        Turn turn = std::move(given);
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
                room = Step::find_room(operation, *this);
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

    // What protocols are made of, beside NodeStep.

    /// Where I write `bytes` that others read, and the header says it. Null if everyone has to have finished the operation
    /// before the last first.
    std::byte* own_room(NodeLayout::Header& header, uint32_t bytes) {
        if (std::byte* room = sync_.lend(bytes, number(), finished_by_all_, header.place)) return room;
        header.place = NodeLayout::kNowhere;
        return is_free(kRoomTurns) ? layout_.wide(me_, sequence_) : nullptr;
    }
    const std::byte* room_of(int i, const NodeLayout::Header& header) const {
        return header.place == NodeLayout::kNowhere ? layout_.wide(i, sequence_) : sync_.lent(i, header.place);
    }

    static constexpr bool looks_at_once() { return true; }
    void read_nothing() { sync_.store(layout_.done(me_), sequence_); }
    void finish() {
        sync_.publish(layout_.done(me_), sequence_);
        if (sync_.load(layout_.done_waiters()) != 0) [[unlikely]]
            sync_.wake_all();
    }
    /// Everyone has finished what was before it.
    void note_meeting() { finished_by_all_ = sequence_ - 1; }

    /// At the end of an operation in which I have waited for everyone who reads what I wrote.
    void note_readers() {
        met_readers_ = met_readers_at_ + 1 == sequence_ ? met_readers_ + 1 : 1;
        met_readers_at_ = sequence_;
    }
    /// Whether the slot that I am going to write is free, since the last two operations were such with the same readers: who has
    /// come to the last has finished the one before it.
    bool readers_are_through() const { return met_readers_ >= 2 && met_readers_at_ + 1 == sequence_; }

  private:
    /// Further than participants ever are from each other.
    static constexpr uint32_t kNever = 1u << 30;
    /// Rooms in the area that each has in turn.
    static constexpr uint32_t kRoomTurns = 2;

    void count() {
        if (++sequence_ % kRenewEvery == 0) [[unlikely]]
            renew_all();
    }
    /// What I have noted of others is as old as the last operation for which I wrote.
    [[gnu::cold, gnu::noinline]] void renew_all() {
        if (sequence_ == 0) ++wraps_;
        all_done(sequence_ - 1);
        for (const uint32_t use : {0u, 1u}) renew(layout_.slot(me_, use), sync_, sequence_, finished_by_all_);
        met_readers_ = 0;
        tell();
    }
    void tell() {
        if constexpr (requires { sync_.pass(number(), finished_by_all_); }) sync_.pass(number(), finished_by_all_);
    }
    uint64_t number() const { return uint64_t{wraps_} << 32 | sequence_; }

    /// Whether I may write the next of so many buffers that are used in turn: everyone has finished with its last use.
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
    uint32_t met_readers_ = 0;  ///< operations in a row that ended by note_readers()
    uint32_t met_readers_at_;   ///< the last of them
    NodeLanes<NodeStage> lanes_;
};

}  // namespace starling::collective
