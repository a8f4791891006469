// Formats of a group's traffic: datagrams to the group, and notes and repeats between two members, which sessions carry reliably. Numbers
// are little-endian; docs/multicast.md has the offsets in a table.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling::multicast {

enum class Word : uint8_t {
    data = 1,   ///< carries a fragment of a message
    heartbeat,  ///< announces the end of the sender's stream: members request what they miss and acknowledge the rest
    ping,   ///< the leader's test of which members the group reaches, as long as the longest data; `serial`: number of the test
    ready,  ///< all members answered the test: the group may be used
    echo,   ///< reply to a ping by the member after the leader, sent to the group: tests whether the group reaches the leader
};

/// The header of every datagram. `serial` counts the messages of one sender to the group. Most fragments of a message carry only the header's
/// first kShort bytes, because the fields after them, the message's description, are the same in all fragments (header_bytes()).
struct GroupDatagramHeader {
    static constexpr uint16_t kMagic = 0x4d53;  // "SM"
    static constexpr uint8_t kVersion = 2;
    static constexpr uint32_t kShort = 32;
    /// Every kDescribed-th fragment carries the description. A receiver that has lost the first fragment can thus place those from the next
    /// description on.
    static constexpr uint32_t kDescribed = 16;
    /// Flag: the receiver acknowledges as soon as everything up to this datagram has arrived.
    static constexpr uint16_t kAckNow = 1;

    uint16_t magic;
    uint8_t version;
    Word word;
    uint16_t sender;  ///< index of the member that sends
    uint16_t flags;
    uint64_t epoch;   ///< number of the sender's stream; a new stream has a higher one
    uint32_t serial;  ///< number of the message; in a heartbeat: of the next message
    uint32_t floor;   ///< serial before which all members have acknowledged all messages
    uint32_t fragment;        ///< index of the fragment; in a heartbeat: fragments of message `floor` sent so far
    uint32_t fragment_bytes;  ///< length of each fragment without description except the last, bytes
    // The description of the message, which fragments with the short header lack.
    uint64_t context;
    uint64_t call;
    uint64_t bytes;  ///< length of the message

    bool is_described() const { return word != Word::data || fragment % kDescribed == 0; }
};
static_assert(sizeof(GroupDatagramHeader) == 56 && offsetof(GroupDatagramHeader, context) == GroupDatagramHeader::kShort);

/// Returns how many bytes of the header travel.
inline uint32_t header_bytes(const GroupDatagramHeader& head) {
    return head.is_described() ? sizeof(GroupDatagramHeader) : GroupDatagramHeader::kShort;
}

/// How a message is cut into fragments so that all datagrams but the last have one length: `piece` bytes after a short header, and fewer after
/// a whole one. `piece` is at least kLeast.
struct Fragmentation {
    static constexpr uint32_t kDescription = sizeof(GroupDatagramHeader) - GroupDatagramHeader::kShort;
    static constexpr uint32_t kLeast = 64;

    uint64_t bytes;
    uint32_t piece;

    /// Returns the number of fragments: at least one, which may be empty.
    uint64_t count() const {
        constexpr uint64_t kEvery = GroupDatagramHeader::kDescribed;
        const uint64_t cycle = kEvery * piece - kDescription, rest = bytes % cycle;
        const uint64_t last = rest == 0 ? 0 : (rest + kDescription + piece - 1) / piece;
        return bytes == 0 ? 1 : bytes / cycle * kEvery + last;
    }
    /// Returns the position of a fragment's first byte in the message.
    uint64_t offset(uint64_t fragment) const {
        constexpr uint64_t kEvery = GroupDatagramHeader::kDescribed;
        return fragment * piece - (fragment + kEvery - 1) / kEvery * kDescription;
    }
    uint32_t length(uint64_t fragment) const {
        const uint64_t begin = offset(fragment), end = offset(fragment + 1);
        return static_cast<uint32_t>((end < bytes ? end : bytes) - begin);
    }
};

/// A decoded datagram; `body` points into the bytes from which it was decoded. The description in `head` is 0 if the datagram lacks it.
struct GroupDatagram {
    GroupDatagramHeader head;
    const std::byte* body;
    uint32_t bytes;  ///< length of `body`
};

/// Decodes a datagram. Returns false if it is not of this version, not from one of `members`, or has values that no sender sends.
bool decode(const std::byte* data, size_t bytes, uint32_t members, GroupDatagram& out);

enum class NoteKind : uint8_t {
    pong = 1,  ///< this member and all below it in the leader's tree have received the ping of test `serial`
    ready,     ///< the group's test number `serial` has succeeded
    unready,   ///< the group must not be used: a member has left it or does not join it
    ack,  ///< this member and those below it have all of `sender`'s stream before `serial`, and `fragment` fragments of that message
    missing,        ///< `member` requests fragments of `sender`'s message `serial`: those in `mask`, whose bit 0 is `fragment`
    left,           ///< the note's sender does not have the group any more, and needs nothing more from it
    group_request,  ///< a communicator requests a group of the pool; its description follows
    /// a datagram follows: a repeat, or a heartbeat, which a member passes on to its children in the sender's tree that miss messages
    datagram,
    not_received,  ///< `sender`'s data arrives by sessions only, not by multicast; message `serial` was the last
};

/// A note: a message on its own, or the header of a datagram to a single member.
struct Note {
    static constexpr uint16_t kSeveral = 0xffff;  ///< value of `member` for more than one member

    uint64_t group;  ///< the group's key
    NoteKind kind;
    uint8_t urgent;   ///< missing: earlier requests had no effect; unready: the note applies to any test
    uint16_t sender;  ///< member whose stream the note concerns
    uint16_t member;  ///< member that sent the note, or the member that misses fragments
    uint16_t epoch;   ///< lowest bits of the stream's epoch, in ack and missing
    uint32_t serial;
    uint32_t fragment;
    uint64_t mask;
};
static_assert(sizeof(Note) == 32);

/// Returns whether a note is valid in a group of `members` members.
bool check(const Note& note, uint32_t members);

}  // namespace starling::multicast
