// What members of a group tell each other: datagrams to the group, and notes and repeats from one to another, which sessions carry
// reliably. Numbers are little-endian; docs/multicast.md has the offsets in a table.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling::multicast {

enum class Word : uint8_t {
    data = 1,   ///< a fragment of a message
    heartbeat,  ///< how far the sender's stream goes: who has less asks for it, all say what they have
    ping,       ///< the leader asks who is reached; `serial` is the test's number. As long as the longest datagram
    ready,      ///< all have answered: the group may be used
    echo,  ///< so that the leader, too, is known to be reached: the member behind it has had the ping, and sends what is as long
};

/// First in every datagram. `serial` counts the messages of one sender to the group.
struct Head {
    static constexpr uint16_t kMagic = 0x4d53;  // "SM"
    static constexpr uint8_t kVersion = 1;
    static constexpr uint16_t kAckNow = 1;  ///< acknowledge as soon as all up to here has come

    uint16_t magic;
    uint8_t version;
    Word word;
    uint16_t sender;  ///< member
    uint16_t flags;
    uint64_t epoch;   ///< of the sender's stream: whoever begins one anew takes a later number
    uint32_t serial;  ///< of the message; a heartbeat's: of the next one
    uint32_t floor;   ///< all below it has been acknowledged by all members
    uint64_t context;
    uint64_t call;
    uint64_t bytes;     ///< of the message
    uint32_t fragment;  ///< which; a heartbeat's: how many of message `floor` have been sent
    uint32_t piece;     ///< bytes of all fragments but the last
};
static_assert(sizeof(Head) == 56);

/// Fragments of a message; at least one, which may be empty.
inline uint64_t fragments_of(uint64_t bytes, uint32_t piece) { return bytes == 0 ? 1 : (bytes + piece - 1) / piece; }

/// A datagram taken apart; `body` points into the bytes it was made from.
struct Datagram {
    Head head;
    const std::byte* body;
    uint32_t bytes;  ///< of body
};

/// False if it is no datagram of this version among `members`, or says what no sender says.
bool decode(const std::byte* data, size_t bytes, uint32_t members, Datagram& out);

enum class NoteKind : uint8_t {
    pong = 1,  ///< all below this member in the leader's tree have had the ping of test `serial`
    ready,     ///< test `serial` has succeeded
    unready,   ///< the group carries nothing any more: somebody has left it
    ack,  ///< this member, and those below it, have all of `sender`'s stream before `serial`, and `fragment` fragments of that
    missing,   ///< fragments of `sender`'s message `serial`, from `fragment` on, the bits of `mask`, are wanted by `who`
    gone,      ///< whoever says so knows nothing of the group any more, since all that concerns it has come
    wish,      ///< a communicator would like a group of the pool: which, follows
    datagram,  ///< one follows: a repeat, or a heartbeat, which those pass on who wait for others
    unheard,   ///< what `sender` sends comes by sessions, message `serial` is the last, and nothing of it by the group
};

/// All of a note, and what is in front of a datagram that goes to one.
struct Note {
    static constexpr uint16_t kSeveral = 0xffff;  ///< `who`: more than one

    uint64_t group;  ///< its key
    NoteKind kind;
    uint8_t urgent;   ///< ack: there is nothing behind; missing: the group has not helped; unready: whatever test it is
    uint16_t sender;  ///< member, whose stream it is about
    uint16_t who;     ///< member
    uint16_t epoch;   ///< ack, missing: the lowest bits of the stream's
    uint32_t serial;
    uint32_t fragment;
    uint64_t mask;
};
static_assert(sizeof(Note) == 32);

/// False if it is no note among `members`.
bool check(const Note& note, uint32_t members);

}  // namespace starling::multicast
