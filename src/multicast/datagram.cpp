#include "multicast/datagram.h"

#include <cstring>

namespace starling::multicast {

namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 40;
constexpr uint32_t kLeastPiece = 64, kMostPiece = 64 * 1024;

bool is_fragment(const GroupDatagramHeader& head, size_t body) {
    if (head.bytes > kMostBytes || head.fragment_bytes < kLeastPiece || head.fragment_bytes > kMostPiece) return false;
    const uint64_t fragments = fragments_of(head.bytes, head.fragment_bytes);
    if (head.fragment >= fragments) return false;
    const bool last = head.fragment + 1 == fragments;
    return body == (last ? head.bytes - uint64_t{head.fragment_bytes} * (fragments - 1) : head.fragment_bytes);
}

}  // namespace

bool decode(const std::byte* data, size_t bytes, uint32_t members, GroupDatagram& out) {
    GroupDatagramHeader& head = out.head;
    if (bytes < sizeof head) return false;
    std::memcpy(&head, data, sizeof head);
    out.body = data + sizeof head;
    out.bytes = static_cast<uint32_t>(bytes - sizeof head);
    if (head.magic != GroupDatagramHeader::kMagic || head.version != GroupDatagramHeader::kVersion || head.sender >= members)
        return false;
    if ((head.flags & ~GroupDatagramHeader::kAckNow) != 0) return false;
    // Only in data and heartbeats is `serial` a number of the stream; in tests of the group it is the test's number.
    const bool of_stream = head.word == Word::data || head.word == Word::heartbeat;
    if (of_stream && static_cast<int32_t>(head.serial - head.floor) < 0) return false;
    switch (head.word) {
        case Word::data:
            return is_fragment(head, out.bytes);
        case Word::ping:
        case Word::echo:
            return out.bytes <= kMostPiece;
        case Word::heartbeat:
        case Word::ready:
            return out.bytes == 0;
    }
    return false;
}

bool check(const Note& note, uint32_t members) {
    return note.kind >= NoteKind::pong && note.kind <= NoteKind::not_received && note.sender < members &&
           (note.member < members || note.member == Note::kSeveral);
}

}  // namespace starling::multicast
