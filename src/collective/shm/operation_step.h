// What the protocols of the node stage are made of: one operation's words and buffers in memory that all participants share,
// wherever these lie.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "collective/core/task.h"
#include "collective/shm/layout.h"
#include "comm/neighborhood.h"
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
    const comm::NeighborEdge* edges = nullptr;  ///< then [first, last) are places in this, which says who they are

    int participant(int i) const { return edges ? edges[i].rank : i; }
};

/// The operation that is under way, of all participants alike. `Layout` says where what is; `Derived` has sync(), see
/// stage.h, and
///   void read_nothing()    there is nothing of this operation that I have still to read
///   void finish()          I am through with this operation's buffers
///   void note_meeting()    at a meeting's end
///   bool looks_at_once()   whether what I wait for is looked at when I have written
template <class Derived, class Layout>
class NodeStep {
  public:
    /// The kind that a root gives to a broadcast instead of its own, to tell the others that there is
    /// nothing to read.
    static constexpr uint32_t kFailed = ~0u;
    /// Whether a word has come to a number; numbers wrap. The word has to move with the operations: what is older than half of all
    /// numbers seems to lie ahead. So slots that nobody has to write are renewed in time.
    static bool reached(uint32_t value, uint32_t wanted) { return static_cast<int32_t>(value - wanted) >= 0; }

    const Layout& layout() const { return layout_; }
    bool few() const { return few_; }
    int participants() const { return n_; }
    int me() const { return me_; }

    uint32_t sequence() const { return sequence_; }
    NodeLayout::Header& own_slot() const { return layout_.slot(me_, sequence_); }
    NodeLayout::Header& slot(int i) const { return layout_.slot(i, sequence_); }
    NodeLayout::Header& ring() const { return layout_.ring(sequence_); }
    std::byte* payload_of(int i, uint32_t bytes) const { return NodeLayout::payload(slot(i), bytes); }

    void put_quietly(NodeLayout::Header& header, uint32_t kind, uint32_t bytes) {
        header.bytes = bytes;
        header.kind = kind;
        sync().store(header.sequence, sequence_);
    }
    void put(NodeLayout::Header& header, uint32_t kind, uint32_t bytes) {
        header.bytes = bytes;
        header.kind = kind;
        sync().publish(header.sequence, sequence_);
    }

    bool seen_slot(int i) const { return reached(sync().load(slot(i).sequence), sequence_); }
    /// Goes on from `next` as far as slots have been written.
    bool seen_slots(int& next, int last) const {
        for (; next < last; ++next)
            if (!seen_slot(next)) return false;
        return true;
    }
    bool seen_root() const { return sync().load(ring().sequence) == sequence_; }

    // A meeting: after put_quietly(), come(); then all have come when met(). `next` is theirs, 0 at first.

    /// Whether all others have come already. If arrivals are counted, the last one does `work`, and lets all go.
    template <class Work>
    bool come(int& next, Work work) {
        return few_ ? come_by_slots(next) : come_by_count(work);
    }
    bool met(int& next) const { return few_ ? seen_slots(next, n_) : released(); }
    /// No later meeting is over before I have come to it.
    bool released() const { return sync().load(layout_.release(sequence_)) == sequence_; }
    NodeWait waits_for_all(int next) const {
        return few_ ? NodeWait{NodeWait::Who::writers, sequence_, next, n_} : NodeWait{NodeWait::Who::everyone, sequence_};
    }
    /// The others' slots are on their way here while mine is on its way to them.
    bool come_by_slots(int& next) {
        const bool all = static_cast<const Derived*>(this)->looks_at_once() && seen_slots(next, n_);
        sync().fence();
        sync().wake_all();
        return all;
    }
    template <class Work>
    bool come_by_count(Work work) {
        std::atomic<uint32_t>& arrivals = layout_.arrivals(sequence_);
        if (sync().add(arrivals, 1) + 1 != static_cast<uint32_t>(n_)) return false;
        sync().store(arrivals, 0);
        work();
        sync().publish(layout_.release(sequence_), sequence_);
        sync().wake_all();
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

  protected:
    NodeStep(Layout layout, int n, int me, bool few, uint32_t sequence)
        : layout_(layout), n_(n), me_(me), few_(few), sequence_(sequence) {}

    // What an operation need not have.

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

    [[gnu::cold, gnu::noinline]] static int disagreement(const NodeLayout::Header& header, uint32_t kind, uint32_t bytes) {
        if (header.kind == kFailed)
            return fail(MPI_ERR_PROC_ABORTED, "a collective operation failed on another host: a member is gone");
        if (header.kind != kind)
            return fail(MPI_ERR_OTHER, "the members of a communicator called different collective operations");
        return fail(MPI_ERR_TRUNCATE, "a member gave %u bytes to a collective operation where %u were expected", header.bytes,
                    bytes);
    }
};

/// Operations from one renewal to the next.
inline constexpr uint32_t kRenewEvery = 1u << 28;

/// A slot of mine that I have not written for long gets a number that all have finished, so none that somebody waits for. `sequence`: of
/// the operation that I begin.
template <class Sync>
void renew(NodeLayout::Header& own, const Sync& sync, uint32_t sequence, uint32_t finished) {
    const bool is_old = sequence - sync.load(own.sequence) > kRenewEvery / 2;
    if (is_old && sequence - finished < kRenewEvery / 4) sync.store(own.sequence, finished);
}

// Each participant has a word that says up to which operation it has finished. Who wants to use again what an operation has
// used waits for all.

/// What all have finished, as far as can be seen; `mine` is what I have.
template <class Layout, class Sync>
uint32_t finished_by_all(const Layout& layout, const Sync& sync, int n, int me, uint32_t mine) {
    uint32_t least = mine;
    for (int i = 0; i < n; ++i) {
        const uint32_t done = i == me ? mine : sync.load(layout.done(i));
        if (static_cast<int32_t>(done - least) < 0) least = done;
    }
    return least;
}

/// Awaits that `free` holds, when others have finished. An error if a participant is gone.
template <class Layout, class Sync, class Free>
Task until_free(Layout layout, Sync& sync, Free free, NodeWait what) {
    sync.add(layout.done_waiters(), 1);
    auto all = sync.until(free, what, layout);
    const bool here = co_await all;
    sync.add(layout.done_waiters(), ~0u);
    co_return here ? MPI_SUCCESS : MPI_ERR_PROC_ABORTED;
}

}  // namespace starling::collective
