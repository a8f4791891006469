// The node stage: small collective operations straight through memory that all participants share.
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
// How words are read, written and waited for is a parameter, so that tests can go through all
// interleavings.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "collective/node_area.h"
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

/// Protocols over an area. `Sync` has:
///   uint32_t load(const std::atomic<uint32_t>&)          sequentially consistent
///   void store(std::atomic<uint32_t>&, uint32_t)         release
///   void publish(std::atomic<uint32_t>&, uint32_t)       sequentially consistent: a wake may follow
///   void fence()                                         makes the stores before it published, so to speak
///   uint32_t add(std::atomic<uint32_t>&, uint32_t)       sequentially consistent; gives the old value
///   bool wait(condition, NodeWait)                       true when it holds; false if a participant is
///   gone void wake(int participant), void wake_all()          after publish or add: whoever sleeps looks
///   again
///   std::byte* lend(uint32_t bytes, uint64_t number, uint32_t finished, uint32_t& place)
///       a room for operation `number` outside the area, used again when all have published in done() that they have
///       finished it; `finished`: the last one of which that is known. Null if there is none now.
///   const std::byte* lent(int participant, uint32_t place)                           what a place in a header means
/// Data is moved by callbacks that get pointers into the area. Every call gives an MPI error class; after
/// an error from wait the stage is broken and every call gives MPI_ERR_PROC_ABORTED.
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
    bool broken() const { return broken_; }
    Sync& sync() { return sync_; }
    bool few() const { return few_; }
    int participants() const { return n_; }

    /// I shall never look again: nobody need wait for that, whatever operation I have come to.
    void leave() {
        if (!broken_) sync_.publish(layout_.done(me_), sequence_ + kNever);
        broken_ = true;
    }
    int me() const { return me_; }

    int barrier() {
        if (!begin(few() ? 2 : 0)) return gone();
        if (!few()) return arrive([] {}) ? finish_meeting() : gone();
        put_quietly(layout_.slot(me_, sequence_), 0, 0);
        sync_.store(layout_.done(me_), sequence_);  // already: there is nothing to read
        if (!meet_by_slots()) return gone();
        note_meeting();
        return MPI_SUCCESS;
    }

    /// An operation that I have no part in, or that goes another way.
    int skip() {
        if (!begin(0)) return gone();
        finish();
        return MPI_SUCCESS;
    }

    /// `write(payload)` at the root, `read(payload)` at those who want the data. Who sleeps is woken unless
    /// `more` broadcasts follow at once, fewer than there are buffers.
    template <class Write, class Read>
    int bcast(uint32_t kind, int root, bool reads, uint32_t bytes, Write write, Read read, bool more = false) {
        const auto room = [&](NodeLayout::Header& header) { return NodeLayout::payload(header, bytes); };
        return from_root(NodeLayout::kRingBuffers, room, kind, root, reads, bytes, write, read, more);
    }

    /// The same through the root's wide room.
    template <class Write, class Read>
    int bcast_wide(uint32_t kind, int root, bool reads, uint32_t bytes, Write write, Read read, bool more = false) {
        const auto room = [&](NodeLayout::Header& header) {
            return me_ == root ? own_room(header, bytes) : room_of(root, header);
        };
        return from_root(NodeLayout::kRingBuffers, room, kind, root, reads, bytes, write, read, more);
    }

    /// Those in [first, last) `write(payload)` their operand; then the root, which may be one of them,
    /// `read(slot)`: slot(i) is the payload of participant i.
    template <class Write, class Read>
    int to_root(uint32_t kind, int root, int first, int last, uint32_t bytes, Write write, Read read) {
        const bool writes = first <= me_ && me_ < last;
        if (!begin(writes ? 2 : 0)) return gone();
        int error = MPI_SUCCESS;
        if (writes) {
            NodeLayout::Header& header = layout_.slot(me_, sequence_);
            write(NodeLayout::payload(header, bytes));
            put(header, kind, bytes);
            if (me_ != root) sync_.wake(root);
        }
        if (me_ == root) {
            if (!wait_for_slots(first, last)) return gone();
            error = check_slots(first, last, kind, [bytes](int) { return bytes; });
            if (error == MPI_SUCCESS) read([this, bytes](int i) { return payload_of(i, bytes); });
        }
        finish();
        return error;
    }

    /// Everyone writes, participant i bytes_of(i), and everyone reads everything: a meeting.
    template <std::invocable<int> Bytes, class Write, class Read>
    int to_all(uint32_t kind, Bytes bytes_of, Write write, Read read) {
        const auto slot = [&](int i) { return payload_of(i, bytes_of(i)); };
        return exchange([&] { return slot(me_); }, slot, kind, bytes_of, write, read);
    }
    template <class Write, class Read>
    int to_all(uint32_t kind, uint32_t bytes, Write write, Read read) {
        return to_all(
            kind, [bytes](int) { return bytes; }, write, read);
    }

    /// The same with pieces, through the participants' wide rooms; mine has to hold `room_bytes`.
    template <std::invocable<int> Bytes, class Write, class Read>
    int to_all_wide(uint32_t kind, Bytes bytes_of, uint32_t room_bytes, Write write, Read read) {
        const auto room = [this](int i) { return room_of(i, layout_.slot(i, sequence_)); };
        const auto own = [&] { return own_room(layout_.slot(me_, sequence_), room_bytes); };
        return exchange(own, room, kind, bytes_of, write, read);
    }
    template <class Write, class Read>
    int to_all_wide(uint32_t kind, uint32_t bytes, uint32_t room_bytes, Write write, Read read) {
        return to_all_wide(
            kind, [bytes](int) { return bytes; }, room_bytes, write, read);
    }

    /// Everyone writes; the last one to come `combine(slot, result)`s, giving an error class; everyone
    /// reads the result: a meeting. The result may be as long as a ring buffer.
    template <class Write, class Combine, class Read>
    int combine(uint32_t kind, uint32_t bytes, Write write, Combine combine, Read read) {
        if (!begin(2)) return gone();
        NodeLayout::Header& header = layout_.slot(me_, sequence_);
        NodeLayout::Header& result = layout_.ring(sequence_);
        write(NodeLayout::payload(header, bytes));
        put_quietly(header, kind, bytes);
        const bool met = arrive([&] {
            int error = check_slots(0, n_, kind, [bytes](int) { return bytes; });
            if (error == MPI_SUCCESS)
                error = combine([this, bytes](int i) { return payload_of(i, bytes); }, NodeLayout::payload(result, bytes));
            result.bytes = static_cast<uint32_t>(error);
            sync_.store(result.sequence, sequence_);
        });
        if (!met) return gone();
        const int error = static_cast<int>(result.bytes);
        if (error == MPI_SUCCESS) read(static_cast<const std::byte*>(NodeLayout::payload(result, bytes)));
        finish_meeting();
        return error == MPI_SUCCESS ? error : fail(error, "the members of a collective operation disagree on it");
    }

  private:
    /// Further than participants ever are from each other.
    static constexpr uint32_t kNever = 1u << 30;

    /// Takes the next number. If I am going to write a buffer of which there are `buffers` in turn, waits
    /// until everyone has finished with its last use.
    bool begin(uint32_t buffers) {
        if (broken_) return false;
        if (++sequence_ == 0) [[unlikely]]
            ++wraps_;
        if (buffers == 0 || reached(finished_by_all_, sequence_ - buffers)) return true;
        return wait_for_done(sequence_ - buffers);
    }

    [[gnu::noinline]] bool wait_for_done(uint32_t wanted) {
        const auto all_done = [&] {
            uint32_t least = sequence_ - 1;
            for (int i = 0; i < n_; ++i) {
                const uint32_t done = i == me_ ? sequence_ - 1 : sync_.load(layout_.done(i));
                if (!reached(done, least)) least = done;
            }
            finished_by_all_ = least;
            return reached(least, wanted);
        };
        if (all_done()) return true;
        sync_.add(layout_.done_waiters(), 1);
        const bool here = sync_.wait(all_done, NodeWait{NodeWait::Who::readers, wanted, 0, n_});
        sync_.add(layout_.done_waiters(), ~0u);
        return here;
    }

    template <class Room, class Write, class Read>
    int from_root(uint32_t buffers, Room room, uint32_t kind, int root, bool reads, uint32_t bytes, Write& write, Read& read,
                  bool more) {
        if (!begin(me_ == root ? buffers : 0)) return gone();
        NodeLayout::Header& header = layout_.ring(sequence_);
        int error = MPI_SUCCESS;
        if (me_ == root) {
            std::byte* out = room(header);
            if (!out) return gone();
            write(out);
            put(header, kind, bytes);
            if (!more) sync_.wake_all();
        } else if (reads) {
            const auto here = [&] { return sync_.load(header.sequence) == sequence_; };
            if (!sync_.wait(here, NodeWait{NodeWait::Who::root, sequence_, root})) return gone();
            error = check(header, kind, bytes);
            if (error == MPI_SUCCESS) read(static_cast<const std::byte*>(room(header)));
        }
        finish();
        return error;
    }

    template <class Own, class Room, class Bytes, class Write, class Read>
    int exchange(Own own, Room room, uint32_t kind, Bytes& bytes_of, Write& write, Read& read) {
        if (!begin(2)) return gone();
        std::byte* out = own();
        if (!out) return gone();
        write(out);
        put_quietly(layout_.slot(me_, sequence_), kind, bytes_of(me_));
        if (!(few() ? meet_by_slots() : arrive([] {}))) return gone();
        const int error = check_slots(0, n_, kind, bytes_of);
        if (error == MPI_SUCCESS) read(room);
        finish_meeting();
        return error;
    }

    /// Where I write `bytes` that others read, and the header says it. Null if a participant is gone.
    std::byte* own_room(NodeLayout::Header& header, uint32_t bytes) {
        const uint64_t number = uint64_t{wraps_} << 32 | sequence_;
        if (std::byte* room = sync_.lend(bytes, number, finished_by_all_, header.place)) return room;
        header.place = NodeLayout::kNowhere;
        // There are two of those in the area. Who is waited for may not have been woken yet.
        if (!reached(finished_by_all_, sequence_ - 2)) {
            sync_.wake_all();
            if (!wait_for_done(sequence_ - 2)) return nullptr;
        }
        return layout_.wide(me_, sequence_);
    }
    std::byte* room_of(int i, const NodeLayout::Header& header) {
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
    bool seen_slots(int& next, int last) {
        for (; next < last; ++next)
            if (!reached(sync_.load(layout_.slot(next, sequence_).sequence), sequence_)) return false;
        return true;
    }
    bool wait_for_slots(int first, int last) {
        return sync_.wait([&, next = first]() mutable { return seen_slots(next, last); },
                          NodeWait{NodeWait::Who::writers, sequence_, first, last});
    }
    /// After put_quietly(). The others' slots are on their way here while mine is on its way to them.
    bool meet_by_slots() {
        int next = 0;
        const bool met = seen_slots(next, n_);
        sync_.fence();
        sync_.wake_all();
        return met || wait_for_slots(next, n_);
    }

    /// Counts me in; the last one does `work` and lets all go.
    template <class Work>
    bool arrive(Work work) {
        meeting_end_ += static_cast<uint32_t>(n_);
        if (sync_.add(layout_.arrivals(), 1) + 1 == meeting_end_) {
            work();
            sync_.publish(layout_.release(), sequence_);
            sync_.wake_all();
            return true;
        }
        return sync_.wait([this] { return reached(sync_.load(layout_.release()), sequence_); },
                          NodeWait{NodeWait::Who::everyone, sequence_});
    }

    std::byte* payload_of(int i, uint32_t bytes) { return NodeLayout::payload(layout_.slot(i, sequence_), bytes); }

    int check(const NodeLayout::Header& header, uint32_t kind, uint32_t bytes) const {
        if (header.kind == kind && header.bytes == bytes) [[likely]]
            return MPI_SUCCESS;
        return disagreement(header, kind, bytes);
    }
    [[gnu::cold, gnu::noinline]] static int disagreement(const NodeLayout::Header& header, uint32_t kind, uint32_t bytes) {
        if (header.kind == kFailed)
            return fail(MPI_ERR_PROC_ABORTED, "a collective operation failed on another host: a member is gone");
        if (header.kind != kind)
            return fail(MPI_ERR_OTHER, "the members of a communicator called different collective operations");
        return fail(MPI_ERR_TRUNCATE, "a member gave %u bytes to a collective operation where %u were expected", header.bytes,
                    bytes);
    }
    template <class Bytes>
    int check_slots(int first, int last, uint32_t kind, Bytes bytes_of) {
        for (int i = first; i < last; ++i)
            if (const int error = check(layout_.slot(i, sequence_), kind, bytes_of(i))) return error;
        return MPI_SUCCESS;
    }

    /// I am through with this operation's buffers.
    void finish() {
        sync_.publish(layout_.done(me_), sequence_);
        if (sync_.load(layout_.done_waiters()) != 0) [[unlikely]]
            sync_.wake_all();
    }
    /// The same after a meeting: everyone has finished what was before it.
    int finish_meeting() {
        finish();
        note_meeting();
        return MPI_SUCCESS;
    }
    void note_meeting() {
        if (!reached(finished_by_all_, sequence_ - 1)) finished_by_all_ = sequence_ - 1;
    }

    [[gnu::cold]] int gone() {
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
