// NodeStep, the base class of the shared-memory stage's protocols: it accesses the words and buffers of one operation, which are in the
// stage's area or in one of its lanes.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "collective/core/task.h"
#include "collective/shm/layout.h"
#include "comm/neighborhood.h"
#include "message/revocation.h"
#include "mpi.h"

namespace starling::collective {

/// The participants for which a wait in the stage waits, for wait reports.
struct NodeWait {
    enum class Who : uint8_t {
        writers,   ///< participants of [first, last) that have not written the operation's number to their slots
        readers,   ///< all participants that have not finished operation `sequence`
        everyone,  ///< those not yet in the meeting (a barrier within the operation); arrivals are only counted
        root,      ///< participant `first`
    } who;
    uint32_t sequence;
    int first = 0, last = 0;
    const comm::NeighborEdge* edges = nullptr;  ///< if set, [first, last) are indices into this array of edges

    int participant(int i) const { return edges ? edges[i].rank : i; }

    /// Returns whether the wait may be for a participant that needs the waiting process's core (`is_here`), and so arrives only after a
    /// yield. If all missing writers are on other cores, they mostly arrive sooner than a yield returns. A process that yields meanwhile
    /// finds the operation complete one turn later, and its core needs three turns for two barriers instead of two. So does a process that
    /// waits for a root on another core while the others on this core wait for the same root. Before they have finished the earlier
    /// operations (`has_finished`), they have work, and need the core. Waits for readers always yield.
    template <class IsHere, class HasWritten, class HasFinished>
    bool needs_yield(int me, int n, IsHere is_here, HasWritten has_written, HasFinished has_finished) const {
        if (who == Who::root) {
            if (is_here(first)) return true;
            for (int i = 0; i < n; ++i)
                if (i != me && is_here(i) && !has_finished(i)) return true;
            return false;
        }
        if (who != Who::writers) return true;
        for (int i = first; i < last; ++i) {
            const int other = participant(i);
            if (other != me && is_here(other) && !has_written(other)) return true;
        }
        return false;
    }
};

/// One operation in progress, with the same number on all participants. `Layout` locates its words; `Derived` has sync(), see stage.h, and
///   void read_nothing()    this process has no more data of this operation to read
///   void finish()          this process no longer needs this operation's buffers
///   void note_meeting()    called at the end of a meeting
///   bool polls_at_once()   whether to poll right after writing
template <class Derived, class Layout>
class NodeStep {
  public:
    /// Kind that a failed root writes in place of the operation's, so that the others read no data.
    static constexpr uint32_t kFailed = ~0u;
    /// Kind in place of kFailed if the root knows that the communicator is revoked; the others may not know it yet.
    static constexpr uint32_t kRevoked = ~0u - 1;
    /// Returns whether a word has reached a number. Numbers wrap, so a word that lags by more than half of all numbers seems to lie ahead;
    /// therefore slots that are not written are renewed in time.
    static bool reached(uint32_t value, uint32_t wanted) { return static_cast<int32_t>(value - wanted) >= 0; }

    const Layout& layout() const { return layout_; }
    bool few() const { return few_; }
    int participants() const { return n_; }
    int me() const { return me_; }

    uint32_t sequence() const { return sequence_; }
    NodeLayout::StageHeader& own_slot() const { return layout_.slot(me_, sequence_); }
    NodeLayout::StageHeader& slot(int i) const { return layout_.slot(i, sequence_); }
    NodeLayout::StageHeader& ring() const { return layout_.ring(sequence_); }
    std::byte* payload_of(int i, uint32_t bytes) const { return NodeLayout::payload(slot(i), bytes); }

    void put_quietly(NodeLayout::StageHeader& header, uint32_t kind, uint32_t bytes) {
        header.bytes = bytes;
        header.kind = kind;
        sync().store(header.sequence, sequence_);
    }
    void put(NodeLayout::StageHeader& header, uint32_t kind, uint32_t bytes) {
        header.bytes = bytes;
        header.kind = kind;
        sync().publish(header.sequence, sequence_);
    }

    bool slot_written(int i) const { return reached(sync().load(slot(i).sequence), sequence_); }
    /// Advances `next` past the slots that have been written; returns whether all up to `last` have.
    bool slots_written(int& next, int last) const {
        for (; next < last; ++next)
            if (!slot_written(next)) return false;
        return true;
    }
    bool root_has_written() const { return sync().load(ring().sequence) == sequence_; }

    // A meeting: after put_quietly() each participant calls enter(); all_entered() returns whether all have entered. `next` is the state of both,
    // initially 0.

    /// Enters a meeting. Returns whether all others have entered already. If arrivals are counted, the last participant calls `work` and
    /// releases the others.
    template <class Work>
    bool enter(int& next, Work work) {
        return few_ ? enter_by_slots(next) : enter_by_count(work);
    }
    bool all_entered(int& next) const { return few_ ? slots_written(next, n_) : released(); }
    /// Returns whether all have entered the meeting. Comparing for equality suffices, because no later meeting can end before this process
    /// has entered it.
    bool released() const { return sync().load(layout_.release(sequence_)) == sequence_; }
    NodeWait waits_for_all(int next) const {
        return few_ ? NodeWait{NodeWait::Who::writers, sequence_, next, n_} : NodeWait{NodeWait::Who::everyone, sequence_};
    }
    /// Enters a meeting in which each participant polls the others' slots. Polls right after writing, so that the others' cache lines
    /// travel here while this process's line travels to them.
    bool enter_by_slots(int& next) {
        const bool all = static_cast<const Derived*>(this)->polls_at_once() && slots_written(next, n_);
        sync().fence();
        sync().wake_all();
        return all;
    }
    template <class Work>
    bool enter_by_count(Work work) {
        std::atomic<uint32_t>& arrivals = layout_.arrivals(sequence_);
        if (sync().add(arrivals, 1) + 1 != static_cast<uint32_t>(n_)) return false;
        sync().store(arrivals, 0);
        work();
        sync().publish(layout_.release(sequence_), sequence_);
        sync().wake_all();
        return true;
    }

    int check(const NodeLayout::StageHeader& header, uint32_t kind, uint32_t bytes) const {
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

  protected:
    NodeStep(Layout layout, int n, int me, bool few, uint32_t sequence)
        : layout_(layout), n_(n), me_(me), few_(few), sequence_(sequence) {}

    // Call the steps that an operation may omit; an omitted step does nothing.

    template <class Operation>
    static bool find_room(Operation& operation, Derived& on) {
        if constexpr (requires { operation.find_room(on); })
            return operation.find_room(on);
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

    Layout layout_;
    int n_, me_;
    bool few_;
    uint32_t sequence_;

  private:
    auto& sync() { return static_cast<Derived*>(this)->sync(); }
    auto& sync() const { return static_cast<const Derived*>(this)->sync(); }

    [[gnu::cold, gnu::noinline]] static int disagreement(const NodeLayout::StageHeader& header, uint32_t kind, uint32_t bytes) {
        if (header.kind == kFailed)
            return fail(MPI_ERR_PROC_ABORTED, "a collective operation failed on another host: a member has ended");
        if (header.kind == kRevoked) return message::why_revoked();
        if (header.kind != kind)
            return fail(MPI_ERR_OTHER,
                        "the members of a communicator called different collective operations; all must call "
                        "the same ones in the same order");
        return fail(MPI_ERR_TRUNCATE, "a member passed %u bytes to a collective operation where %u were expected", header.bytes,
                    bytes);
    }
};

/// The number of operations from one renewal to the next.
inline constexpr uint32_t kRenewEvery = 1u << 28;

/// Stores a new number in this process's slot if the slot has not been written for long. All participants have finished the operation of
/// that number, so no process waits for it. `sequence`: number of the operation that begins here.
template <class Sync>
void renew(NodeLayout::StageHeader& own, const Sync& sync, uint32_t sequence, uint32_t finished) {
    const bool is_old = sequence - sync.load(own.sequence) > kRenewEvery / 2;
    if (is_old && sequence - finished < kRenewEvery / 4) sync.store(own.sequence, finished);
}

// Each participant publishes in done() the number up to which it has finished all operations. A buffer is reused only when all have
// finished the operation that used it.

/// Returns the number up to which all participants have finished, as far as this process sees; `mine` is its own.
template <class Layout, class Sync>
uint32_t finished_by_all(const Layout& layout, const Sync& sync, int n, int me, uint32_t mine) {
    uint32_t least = mine;
    for (int i = 0; i < n; ++i) {
        const uint32_t done = i == me ? mine : sync.load(layout.done(i));
        if (static_cast<int32_t>(done - least) < 0) least = done;
    }
    return least;
}

/// Waits until `free` returns true, because other participants have finished operations. Returns an error if a participant has ended.
template <class Layout, class Sync, class Free>
Task until_free(Layout layout, Sync& sync, Free free, NodeWait what) {
    sync.add(layout.done_waiters(), 1);
    auto all = sync.until(free, what, layout);
    const bool here = co_await all;
    sync.add(layout.done_waiters(), ~0u);
    co_return here ? MPI_SUCCESS : MPI_ERR_PROC_ABORTED;
}

}  // namespace starling::collective
