// The layout of a stage's area: memory shared by the participants of an exchange, all on one machine. It is part of the job segment, in the
// reserved part of the leader's region.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace starling::collective {

/// Memory shared by all participants of an exchange; zero before the first use.
struct NodeArea {
    std::byte* base = nullptr;
    size_t bytes = 0;
};

/// Locates slots, rings and counters in the area. A word that one participant writes and others wait for shares its cache line with no
/// other word.
class NodeLayout {
  public:
    /// The maximum number of participants of a stage.
    static constexpr int kMost = 256;
    /// Largest number of participants that poll the slots of all others; with more, arrivals are counted.
    static constexpr int kFew = 4;
    /// The number of ring buffers, which broadcasts and results use in rotation, and the payload bytes of each.
    static constexpr uint32_t kRingBuffers = 8;
    static constexpr uint32_t kRingPayload = 8192;

    /// The header that precedes every payload in the area.
    struct alignas(16) StageHeader {
        std::atomic<uint32_t> sequence;  ///< number of the operation whose data follows; written last
        uint32_t bytes;
        uint32_t kind;   ///< operation kind according to the writer, for checks
        uint32_t place;  ///< place of data in the writer's outbox: offset plus one; kNowhere: the data is not in the outbox
    };
    static constexpr uint32_t kNowhere = 0;
    /// A word that has a whole cache line.
    struct alignas(64) StageLine {
        std::atomic<uint32_t> value;
    };

    NodeLayout(std::byte* base, int n) : base_(base), n_(n) {}

    /// Returns the number of slots, a power of two, that a participant uses in rotation. A participant whose data others read may be that
    /// many operations ahead of them. The further ranks that share a core can be ahead, the less often the core must switch between them.
    /// Two slots suffice for two participants, and stay in the caches.
    static constexpr uint32_t slot_turns(int n) { return n > 2 ? 4 : 2; }
    /// Returns the payload bytes of a participant's slot.
    static uint32_t slot_payload(int n) { return n <= 64 ? 4096 : n <= 128 ? 2048 : 1024; }
    /// Returns the bytes of one piece of a longer operand, which a participant writes to its pipeline buffer.
    static uint32_t wide_payload(int n) {
        uint32_t bytes = n == 2 ? 128 * 1024 : 64 * 1024;
        while (bytes > 4096 && 2 * static_cast<uint64_t>(n) * bytes > kMostWide) bytes /= 2;
        return bytes;
    }
    /// Returns the bytes of a participant's pipeline buffer. With three or four participants it holds 64 KB for each of the others, so that
    /// they exchange such blocks in one meeting. Each further meeting would cost a core with two ranks another switch.
    static uint32_t wide_bytes(int n) { return n == 3 || n == 4 ? 256 * 1024 : wide_payload(n); }
    /// Returns the bytes of a pipeline buffer that are for one reader, if the buffer is divided among all other participants. Whole cache
    /// lines.
    static uint32_t wide_block(int n) { return wide_bytes(n) / static_cast<uint32_t>(n - 1) / 64 * 64; }
    static size_t bytes(int n);
    /// Returns the bytes of an area without pipeline buffers and lanes: enough for barriers and data that fits into a slot.
    static size_t bytes_for_meetings(int n) { return wide_offset(n); }

    /// Returns the word that counts the participants in the current meeting (an operation that none leaves before all have entered it). 0
    /// between meetings.
    std::atomic<uint32_t>& arrivals(uint32_t) const { return line(0); }
    std::atomic<uint32_t>& release(uint32_t) const { return line(1); }  ///< number of the last meeting that all have entered
    std::atomic<uint32_t>& done_waiters() const { return line(2); }     ///< number of participants that wait for a done() word
    std::atomic<uint32_t>& detached() const { return line(3); }         ///< participants that will never access the area again
    std::atomic<uint32_t>& verdict() const { return line(4); }          ///< whether the members agreed to use the area
    /// The number of the last operation that a participant has finished; written by that participant only.
    std::atomic<uint32_t>& done(int participant) const { return line(kLines + static_cast<size_t>(participant)); }

    /// Returns a participant's slot for operation `sequence`; there are slot_turns(), used in turn.
    StageHeader& slot(int participant, uint32_t sequence) const {
        const uint32_t turns = slot_turns(n_);
        return at(slots_offset(n_) + (static_cast<size_t>(participant) * turns + (sequence & (turns - 1))) * slot_bytes(n_));
    }
    /// Returns a participant's pipeline buffer for a piece that did not fit into its outbox; the slot's header describes it. Unused buffers
    /// cost no memory.
    std::byte* wide(int participant, uint32_t sequence) const {
        return base_ + wide_offset(n_) + turn(participant, sequence) * wide_bytes(n_);
    }
    StageHeader& ring(uint32_t sequence) const { return at(ring_offset(n_) + sequence % kRingBuffers * kRingBytes); }
    /// A small payload shares the header's cache line; a larger one begins on the next line.
    static std::byte* payload(StageHeader& header, uint32_t bytes) {
        const bool small = bytes <= sizeof(StageLine) - sizeof(StageHeader);
        return reinterpret_cast<std::byte*>(&header) + (small ? sizeof(StageHeader) : sizeof(StageLine));
    }

    /// Resets the area for a new owner, except the lanes: sets the number of the last operation to `first` and all other words to 0.
    void clear(uint32_t first) const;

  private:
    friend class LaneLayout;
    static constexpr size_t kLines = 5;
    static constexpr uint64_t kMostWide = 2u << 20;
    // Bytes of a ring buffer. The header's line precedes the payload, so that the payload's size is still a power of two.
    static constexpr size_t kRingBytes = kRingPayload + sizeof(StageLine);
    static size_t slot_bytes(int n) { return slot_payload(n) + sizeof(StageLine); }
    static size_t turn(int participant, uint32_t sequence) { return static_cast<size_t>(participant) * 2 + sequence % 2; }
    static size_t ring_offset(int n) { return (kLines + static_cast<size_t>(n)) * sizeof(StageLine); }
    static size_t slots_offset(int n) { return ring_offset(n) + kRingBuffers * kRingBytes; }
    static size_t wide_offset(int n) { return slots_offset(n) + static_cast<size_t>(n) * slot_turns(n) * slot_bytes(n); }
    static size_t lanes_offset(int n) { return wide_offset(n) + static_cast<size_t>(n) * 2 * wide_bytes(n); }
    std::atomic<uint32_t>& line(size_t index) const { return reinterpret_cast<StageLine*>(base_)[index].value; }
    StageHeader& at(size_t offset) const { return *reinterpret_cast<StageHeader*>(base_ + offset); }

    std::byte* base_;
    int n_;
};
static_assert(sizeof(NodeLayout::StageHeader) == 16);

/// The lanes, at the area's end. Each has all words and buffers of one small operation, so that kLanes of these can be active at the same
/// time. Lane operations have their own numbers, and use the lanes in rotation.
class LaneLayout {
  public:
    using StageHeader = NodeLayout::StageHeader;
    static constexpr uint32_t kLanes = 64;

    LaneLayout(std::byte* base, int n) : base_(base + NodeLayout::lanes_offset(n)), n_(n) {}

    /// Returns the payload bytes of a participant's slot in a lane.
    static constexpr uint32_t payload(int n) { return n <= 16 ? 256 : 48; }
    static size_t bytes(int n) { return lane_offset(n, kLanes); }

    std::atomic<uint32_t>& done_waiters() const { return line(0); }
    /// The number up to which a participant has finished all lane operations; written by that participant only.
    std::atomic<uint32_t>& done(int participant) const { return line(1 + static_cast<size_t>(participant)); }

    std::atomic<uint32_t>& arrivals(uint32_t sequence) const {
        return reinterpret_cast<NodeLayout::StageLine*>(lane(sequence))->value;
    }
    std::atomic<uint32_t>& release(uint32_t sequence) const { return ring(sequence).sequence; }
    /// The buffer for a root's data or for the results of a reduction: up to two payloads.
    StageHeader& ring(uint32_t sequence) const {
        return *reinterpret_cast<StageHeader*>(lane(sequence) + sizeof(NodeLayout::StageLine));
    }
    StageHeader& slot(int participant, uint32_t sequence) const {
        return *reinterpret_cast<StageHeader*>(lane(sequence) + slots_offset(n_) +
                                               static_cast<size_t>(participant) * slot_bytes(n_));
    }

    /// Resets the lanes as NodeLayout::clear() resets the area. has_been_used() returns whether that is needed.
    void clear(uint32_t first) const;
    bool has_been_used(uint32_t first) const { return done(0).load() != first; }

  private:
    static constexpr size_t lines(uint32_t payload) {
        return (payload + sizeof(NodeLayout::StageLine) - 1) / sizeof(NodeLayout::StageLine);
    }
    // Bytes of a slot in a lane. A payload that fits into the header's line needs no further line.
    static constexpr size_t slot_bytes(int n) {
        return sizeof(NodeLayout::StageLine) *
               (payload(n) <= sizeof(NodeLayout::StageLine) - sizeof(StageHeader) ? 1 : 1 + lines(payload(n)));
    }
    static constexpr size_t slots_offset(int n) { return sizeof(NodeLayout::StageLine) * (2 + 2 * lines(payload(n))); }
    static size_t lane_offset(int n, uint32_t lane) {
        const auto ranks = static_cast<size_t>(n);
        return (1 + ranks) * sizeof(NodeLayout::StageLine) + lane * (slots_offset(n) + ranks * slot_bytes(n));
    }
    std::byte* lane(uint32_t sequence) const { return base_ + lane_offset(n_, sequence % kLanes); }
    std::atomic<uint32_t>& line(size_t index) const { return reinterpret_cast<NodeLayout::StageLine*>(base_)[index].value; }

    std::byte* base_;
    int n_;
};
static_assert((LaneLayout::kLanes & (LaneLayout::kLanes - 1)) == 0, "numbers wrap");

inline size_t NodeLayout::bytes(int n) { return lanes_offset(n) + LaneLayout::bytes(n); }

enum class AreaUse : uint8_t {
    communicator,
    plan,      ///< area of one persistent operation; half of the space is reserved for communicators
    meetings,  ///< area of a window, with NodeLayout::bytes_for_meetings() bytes; half of the space is reserved for communicators
};
// The lifetime of an area. Only its participants write to it. Each adds itself to detached() when it leaves, and writes nothing afterwards;
// a participant that has died never does so. The leader reuses the area only when all have left (allocate_area()). So no previous
// participant writes to a reused area, and an area with a death in it is never reused. Areas are never unmapped: they lie in the leader's
// region of the job segment.

/// Allocates an area for `n` participants in this process's region and returns its offset; kNoArea if there is no space. The leader calls
/// it, and calls retire_area() when it has left the area. The area is reused when all participants have left.
int64_t allocate_area(int n, AreaUse use);
void retire_area(int64_t offset, int n, AreaUse use);
inline constexpr int64_t kNoArea = -1;
/// Offset of the area of the whole job's communicator. It is the first one in every region, so members need no message to learn it.
inline constexpr int64_t kWorldArea = 0;

}  // namespace starling::collective
