// The node area: memory that the participants of an exchange share, when all are on one machine. It lies in
// the job segment, in the part of the leader's region that is set aside for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace starling::collective {

/// Shared by all participants of an exchange; zero before the first use.
struct NodeArea {
    std::byte* base = nullptr;
    size_t bytes = 0;
};

/// What lies where. Everything that one participant writes and others wait for is on cache lines of its
/// own.
class NodeLayout {
  public:
    /// Most participants that the node stage serves.
    static constexpr int kMost = 256;
    /// Up to so many everybody looks at everybody.
    static constexpr int kFew = 4;
    /// Buffers that broadcasts and results go through in turn, and bytes in each.
    static constexpr uint32_t kRingBuffers = 8;
    static constexpr uint32_t kRingPayload = 8192;

    /// In front of every payload.
    struct alignas(16) Header {
        std::atomic<uint32_t> sequence;  ///< of the operation whose data is here; written last
        uint32_t bytes;
        uint32_t kind;   ///< what the writer thinks the operation is
        uint32_t place;  ///< of data in the writer's outbox: kNowhere, or one more than its offset
    };
    static constexpr uint32_t kNowhere = 0;
    /// On a line each.
    struct alignas(64) Line {
        std::atomic<uint32_t> value;
    };

    NodeLayout(std::byte* base, int n) : base_(base), n_(n) {}

    /// Payload of a participant's slot.
    static uint32_t slot_payload(int n) { return n <= 64 ? 4096 : n <= 128 ? 2048 : 1024; }
    /// Room that a participant has for one piece of something larger.
    static uint32_t wide_payload(int n) {
        uint32_t bytes = n == 2 ? 128 * 1024 : 64 * 1024;
        while (bytes > 4096 && 2 * static_cast<uint64_t>(n) * bytes > kMostWide) bytes /= 2;
        return bytes;
    }
    /// The same for a block of each other participant: whole lines.
    static uint32_t wide_block(int n) { return wide_payload(n) / static_cast<uint32_t>(n - 1) / 64 * 64; }
    static size_t bytes(int n);
    /// Without rooms and lanes: for barriers and what fits into a slot.
    static size_t bytes_for_meetings(int n) { return wide_offset(n); }

    std::atomic<uint32_t>& arrivals(uint32_t) const { return line(0); }  ///< of a meeting; zero when it is over
    std::atomic<uint32_t>& release(uint32_t) const { return line(1); }   ///< last meeting that all have come to
    std::atomic<uint32_t>& done_waiters() const { return line(2); }      ///< participants that wait for done()
    std::atomic<uint32_t>& detached() const { return line(3); }          ///< participants that will never look again
    std::atomic<uint32_t>& verdict() const { return line(4); }           ///< whether the area is used at all
    /// Last operation that a participant has finished; written by it alone.
    std::atomic<uint32_t>& done(int participant) const { return line(kLines + static_cast<size_t>(participant)); }

    /// A participant's slot for operation `sequence`; there are two, used in turn.
    Header& slot(int participant, uint32_t sequence) const {
        return at(slots_offset(n_) + turn(participant, sequence) * slot_bytes(n_));
    }
    /// Its room for a piece that found no place in its outbox; the header is the slot's. Nobody pays for it who does
    /// not use it.
    std::byte* wide(int participant, uint32_t sequence) const {
        return base_ + wide_offset(n_) + turn(participant, sequence) * wide_payload(n_);
    }
    Header& ring(uint32_t sequence) const { return at(ring_offset(n_) + sequence % kRingBuffers * kRingBytes); }
    /// What is small shares the header's line; what is not begins a line.
    static std::byte* payload(Header& header, uint32_t bytes) {
        const bool small = bytes <= sizeof(Line) - sizeof(Header);
        return reinterpret_cast<std::byte*>(&header) + (small ? sizeof(Header) : sizeof(Line));
    }

    /// Makes what a new owner must find, but for the lanes: zero, and the numbers of operations `first`, behind which the owner's
    /// begin.
    void clear(uint32_t first) const;

  private:
    friend class LaneLayout;
    static constexpr size_t kLines = 5;
    static constexpr uint64_t kMostWide = 2u << 20;
    // With the header in front and yet as much payload as a power of two.
    static constexpr size_t kRingBytes = kRingPayload + sizeof(Line);
    static size_t slot_bytes(int n) { return slot_payload(n) + sizeof(Line); }
    static size_t turn(int participant, uint32_t sequence) { return static_cast<size_t>(participant) * 2 + sequence % 2; }
    static size_t ring_offset(int n) { return (kLines + static_cast<size_t>(n)) * sizeof(Line); }
    static size_t slots_offset(int n) { return ring_offset(n) + kRingBuffers * kRingBytes; }
    static size_t wide_offset(int n) { return slots_offset(n) + static_cast<size_t>(n) * 2 * slot_bytes(n); }
    static size_t lanes_offset(int n) { return wide_offset(n) + static_cast<size_t>(n) * 2 * wide_payload(n); }
    std::atomic<uint32_t>& line(size_t index) const { return reinterpret_cast<Line*>(base_)[index].value; }
    Header& at(size_t offset) const { return *reinterpret_cast<Header*>(base_ + offset); }

    std::byte* base_;
    int n_;
};
static_assert(sizeof(NodeLayout::Header) == 16);

/// The lanes, at the area's end: each has all that one small operation needs, so that as many of these can be under way at a
/// time. They have numbers of their own, and are used in turn.
class LaneLayout {
  public:
    using Header = NodeLayout::Header;
    static constexpr uint32_t kLanes = 64;

    LaneLayout(std::byte* base, int n) : base_(base + NodeLayout::lanes_offset(n)), n_(n) {}

    /// Of a participant's slot.
    static constexpr uint32_t payload(int n) { return n <= 16 ? 256 : 48; }
    static size_t bytes(int n) { return lane_offset(n, kLanes); }

    std::atomic<uint32_t>& done_waiters() const { return line(0); }
    /// All operations up to this one a participant has finished; written by it alone.
    std::atomic<uint32_t>& done(int participant) const { return line(1 + static_cast<size_t>(participant)); }

    std::atomic<uint32_t>& arrivals(uint32_t sequence) const {
        return reinterpret_cast<NodeLayout::Line*>(lane(sequence))->value;
    }
    std::atomic<uint32_t>& release(uint32_t sequence) const { return ring(sequence).sequence; }
    /// What a root gives, or what comes of all operands: up to twice a payload.
    Header& ring(uint32_t sequence) const { return *reinterpret_cast<Header*>(lane(sequence) + sizeof(NodeLayout::Line)); }
    Header& slot(int participant, uint32_t sequence) const {
        return *reinterpret_cast<Header*>(lane(sequence) + slots_offset(n_) +
                                          static_cast<size_t>(participant) * slot_bytes(n_));
    }

    /// The same; has_been_used() says whether that is needed.
    void clear(uint32_t first) const;
    bool has_been_used(uint32_t first) const { return done(0).load() != first; }

  private:
    static constexpr size_t lines(uint32_t payload) {
        return (payload + sizeof(NodeLayout::Line) - 1) / sizeof(NodeLayout::Line);
    }
    // What fits into the header's line is there.
    static constexpr size_t slot_bytes(int n) {
        return sizeof(NodeLayout::Line) * (payload(n) <= sizeof(NodeLayout::Line) - sizeof(Header) ? 1 : 1 + lines(payload(n)));
    }
    static constexpr size_t slots_offset(int n) { return sizeof(NodeLayout::Line) * (2 + 2 * lines(payload(n))); }
    static size_t lane_offset(int n, uint32_t lane) {
        const auto ranks = static_cast<size_t>(n);
        return (1 + ranks) * sizeof(NodeLayout::Line) + lane * (slots_offset(n) + ranks * slot_bytes(n));
    }
    std::byte* lane(uint32_t sequence) const { return base_ + lane_offset(n_, sequence % kLanes); }
    std::atomic<uint32_t>& line(size_t index) const { return reinterpret_cast<NodeLayout::Line*>(base_)[index].value; }

    std::byte* base_;
    int n_;
};
static_assert((LaneLayout::kLanes & (LaneLayout::kLanes - 1)) == 0, "numbers wrap");

inline size_t NodeLayout::bytes(int n) { return lanes_offset(n) + LaneLayout::bytes(n); }

enum class AreaUse : uint8_t {
    communicator,
    plan,      ///< one operation: leaves half of the room to communicators
    meetings,  ///< of a window: NodeLayout::bytes_for_meetings(), and leaves half of the room
};
// The lifetime of an area: participants write to it, and none but those. Each counts itself in detached() when it leaves, and writes nothing
// from then on; one that has died never does. The leader gives the area out again only when all of them are counted (allocate_area()), so of
// those before nobody writes there, and an area with a death in it is given to nobody again. What is not given out is never unmapped: it lies
// in the leader's region of the job segment.

/// Where an area for `n` participants may lie in this process's region; kNoArea if there is no room. The leader
/// hands it out and gives it back with retire_area() when it has left; it is used again when all have.
int64_t allocate_area(int n, AreaUse use);
void retire_area(int64_t offset, int n, AreaUse use);
inline constexpr int64_t kNoArea = -1;
/// The area that every process's region begins with is for the communicator of the whole job: no one need
/// be told.
inline constexpr int64_t kWorldArea = 0;

}  // namespace starling::collective
