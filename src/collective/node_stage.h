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
// An operation is a plain object with phases (node_protocols.h); between them it waits. Two drivers take it through these:
// run() blocks, and has no frame; drive() is a coroutine.
//
// How words are read, written and waited for is a parameter, so that tests can go through all
// interleavings.
#pragma once

#include <cstdint>
#include <utility>

#include "base/error.h"
#include "collective/node_area.h"
#include "collective/task.h"
#include "collective/turns.h"
#include "mpi.h"

namespace starling::collective {

/// Whom a wait in the node stage waits for, for those who look from outside.
struct NodeWait {
    enum class Who : uint8_t {
        writers,   ///< those of [first, last) whose slot has not the operation's number
        readers,   ///< those who have not finished operation `sequence`, of all
        everyone,  ///< those who have not come; it is not known who
        root,      ///< `first`
    } who;
    uint32_t sequence;
    int first = 0, last = 0;
};

/// The state of the protocols over an area. `Sync` has:
///   uint32_t load(const std::atomic<uint32_t>&)          sequentially consistent
///   void store(std::atomic<uint32_t>&, uint32_t)         release
///   void publish(std::atomic<uint32_t>&, uint32_t)       sequentially consistent: a wake may follow
///   void fence()                                         makes the stores before it published, so to speak
///   uint32_t add(std::atomic<uint32_t>&, uint32_t)       sequentially consistent; gives the old value
///   bool wait(condition, NodeWait)                       true when it holds; false if a participant is gone
///   Awaiter until(condition, NodeWait)                   the same, to be awaited; both outlive it
///   void wake(int participant), void wake_all()          after publish or add: whoever sleeps looks again
///   std::byte* lend(uint32_t bytes, uint64_t number, uint32_t finished, uint32_t& place)
///       a room for operation `number` outside the area, used again when all have published in done() that they have
///       finished it; `finished`: the last one of which that is known. Null if there is none now.
///   const std::byte* lent(int participant, uint32_t place)                           what a place in a header means
/// An operation gives an MPI error class. After an error from a wait the stage is broken and every operation gives
/// MPI_ERR_PROC_ABORTED.
template <class Sync>
class NodeStage {
  public:
    /// The kind that a root gives to a broadcast instead of its own, to tell the others that there is
    /// nothing to read.
    static constexpr uint32_t kFailed = ~0u;
    /// Whether a word has come to a number; numbers wrap.
    static bool reached(uint32_t value, uint32_t wanted) { return static_cast<int32_t>(value - wanted) >= 0; }

    NodeStage(std::byte* base, int n, int me, Sync sync, int few = NodeLayout::kFew)
        : layout_(base, n), n_(n), me_(me), few_(n <= few), sync_(std::move(sync)) {}

    const NodeLayout& layout() const { return layout_; }
    Sync& sync() { return sync_; }
    bool few() const { return few_; }
    int participants() const { return n_; }
    int me() const { return me_; }
    bool broken() const { return broken_; }

    /// I shall never look again: nobody need wait for that, whatever operation I have come to.
    void leave() {
        if (!broken_) sync_.publish(layout_.done(me_), sequence_ + kNever);
        broken_ = true;
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
            if (!find_room(operation)) {
                sync_.wake_all();
                if (!wait_until_free(kRoomTurns)) return gone();
                find_room(operation);
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
                    sync_.add(layout_.done_waiters(), 1);
                    const auto free = [this, wanted] { return all_done(wanted); };
                    auto all = sync_.until(free, NodeWait{NodeWait::Who::readers, wanted, 0, n_});
                    const bool here = co_await all;
                    sync_.add(layout_.done_waiters(), ~0u);
                    if (!here) co_return gone();
                }
                room = find_room(operation);
                if (!room) sync_.wake_all();
            }
            if (!operation.put(*this)) {
                const auto ready = [&] { return operation.here(*this); };
                auto others = sync_.until(ready, operation.waits_for(*this));
                const bool here = co_await others;
                if (!here) co_return gone();
            }
            int error = operation.take(*this);
            if (!has_next(operation, error)) co_return error;
        }
    }

    // What protocols are made of; all of the operation that is under way.

    uint32_t sequence() const { return sequence_; }
    NodeLayout::Header& own_slot() const { return layout_.slot(me_, sequence_); }
    NodeLayout::Header& slot(int i) const { return layout_.slot(i, sequence_); }
    NodeLayout::Header& ring() const { return layout_.ring(sequence_); }
    std::byte* payload_of(int i, uint32_t bytes) const { return NodeLayout::payload(slot(i), bytes); }

    /// Where I write `bytes` that others read, and the header says it. Null if everyone has to have finished the operation
    /// before the last first.
    std::byte* own_room(NodeLayout::Header& header, uint32_t bytes) {
        const uint64_t number = uint64_t{wraps_} << 32 | sequence_;
        if (std::byte* room = sync_.lend(bytes, number, finished_by_all_, header.place)) return room;
        header.place = NodeLayout::kNowhere;
        return is_free(kRoomTurns) ? layout_.wide(me_, sequence_) : nullptr;
    }
    const std::byte* room_of(int i, const NodeLayout::Header& header) const {
        return header.place == NodeLayout::kNowhere ? layout_.wide(i, sequence_) : sync_.lent(i, header.place);
    }

    void put_quietly(NodeLayout::Header& header, uint32_t kind, uint32_t bytes) {
        header.bytes = bytes;
        header.kind = kind;
        sync_.store(header.sequence, sequence_);
    }
    void put(NodeLayout::Header& header, uint32_t kind, uint32_t bytes) {
        header.bytes = bytes;
        header.kind = kind;
        sync_.publish(header.sequence, sequence_);
    }

    /// Goes on from `next` as far as slots have been written.
    bool seen_slots(int& next, int last) const {
        for (; next < last; ++next)
            if (!reached(sync_.load(slot(next).sequence), sequence_)) return false;
        return true;
    }
    bool seen_root() const { return sync_.load(ring().sequence) == sequence_; }

    // A meeting: after put_quietly(), come(); then all have come when met(). `next` is theirs, 0 at first.

    /// Whether all others have come already. If arrivals are counted, the last one does `work`, and lets all go.
    template <class Work>
    bool come(int& next, Work work) {
        return few_ ? come_by_slots(next) : come_by_count(work);
    }
    bool met(int& next) const { return few_ ? seen_slots(next, n_) : released(); }
    bool released() const { return reached(sync_.load(layout_.release()), sequence_); }
    NodeWait waits_for_all(int next) const {
        return few_ ? NodeWait{NodeWait::Who::writers, sequence_, next, n_} : NodeWait{NodeWait::Who::everyone, sequence_};
    }
    /// The others' slots are on their way here while mine is on its way to them.
    bool come_by_slots(int& next) {
        const bool all = seen_slots(next, n_);
        sync_.fence();
        sync_.wake_all();
        return all;
    }
    template <class Work>
    bool come_by_count(Work work) {
        meeting_end_ += static_cast<uint32_t>(n_);
        if (sync_.add(layout_.arrivals(), 1) + 1 != meeting_end_) return false;
        work();
        sync_.publish(layout_.release(), sequence_);
        sync_.wake_all();
        return true;
    }

    int check(const NodeLayout::Header& header, uint32_t kind, uint32_t bytes) const {
        if (header.kind == kind && header.bytes == bytes) [[likely]]
            return MPI_SUCCESS;
        return disagreement(header, kind, bytes);
    }
    template <class Bytes>
    int check_slots(int first, int last, uint32_t kind, Bytes bytes_of) const {
        for (int i = first; i < last; ++i)
            if (const int error = check(slot(i), kind, bytes_of(i))) return error;
        return MPI_SUCCESS;
    }

    /// There is nothing of this operation that I have still to read.
    void read_nothing() { sync_.store(layout_.done(me_), sequence_); }
    /// I am through with this operation's buffers.
    void finish() {
        sync_.publish(layout_.done(me_), sequence_);
        if (sync_.load(layout_.done_waiters()) != 0) [[unlikely]]
            sync_.wake_all();
    }
    /// At a meeting's end: everyone has finished what was before it.
    void note_meeting() {
        if (!reached(finished_by_all_, sequence_ - 1)) finished_by_all_ = sequence_ - 1;
    }

  private:
    /// Further than participants ever are from each other.
    static constexpr uint32_t kNever = 1u << 30;
    /// Rooms in the area that each has in turn.
    static constexpr uint32_t kRoomTurns = 2;

    template <class Operation>
    bool find_room(Operation& operation) {
        if constexpr (requires { operation.find_room(*this); })
            return operation.find_room(*this);
        else
            return true;
    }
    template <class Operation>
    static bool has_next(Operation& operation, int& error) {
        if constexpr (requires { operation.next(error); })
            return operation.next(error);
        else
            return false;
    }

    void count() {
        if (++sequence_ == 0) [[unlikely]]
            ++wraps_;
    }

    /// Whether I may write the next of so many buffers that are used in turn: everyone has finished with its last use.
    bool is_free(uint32_t turns) const { return reached(finished_by_all_, sequence_ - turns); }
    bool all_done(uint32_t wanted) {
        uint32_t least = sequence_ - 1;
        for (int i = 0; i < n_; ++i) {
            const uint32_t done = i == me_ ? sequence_ - 1 : sync_.load(layout_.done(i));
            if (!reached(done, least)) least = done;
        }
        finished_by_all_ = least;
        return reached(least, wanted);
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

    [[gnu::cold, gnu::noinline]] static int disagreement(const NodeLayout::Header& header, uint32_t kind, uint32_t bytes) {
        if (header.kind == kFailed)
            return fail(MPI_ERR_PROC_ABORTED, "a collective operation failed on another host: a member is gone");
        if (header.kind != kind)
            return fail(MPI_ERR_OTHER, "the members of a communicator called different collective operations");
        return fail(MPI_ERR_TRUNCATE, "a member gave %u bytes to a collective operation where %u were expected", header.bytes,
                    bytes);
    }
    [[gnu::cold, gnu::noinline]] int gone() {
        leave();
        return fail(MPI_ERR_PROC_ABORTED, "a member of the communicator is gone; collective operations on it fail");
    }

    NodeLayout layout_;
    int n_, me_;
    bool few_;
    Sync sync_;
    bool broken_ = false;
    uint32_t sequence_ = 0, wraps_ = 0;
    uint32_t finished_by_all_ = 0;
    uint32_t meeting_end_ = 0;  ///< arrivals() at the end of the last meeting by counting
};

}  // namespace starling::collective
