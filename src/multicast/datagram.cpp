#include "multicast/datagram.h"

#include <cstring>

namespace starling::multicast {

namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 40;
constexpr uint32_t kMostPiece = 64 * 1024;

bool is_fragment(const GroupDatagramHeader& head, size_t body) {
    if (head.fragment_bytes < Fragmentation::kLeast || head.fragment_bytes > kMostPiece) return false;
    // Without the description the message's length is unknown here; Incoming compares the fragment with it.
    if (!head.is_described()) return body > 0 && body <= head.fragment_bytes;
    const Fragmentation message{head.bytes, head.fragment_bytes};
    return head.bytes <= kMostBytes && head.fragment < message.count() && body == message.length(head.fragment);
}

}  // namespace

bool decode(const std::byte* data, size_t bytes, uint32_t members, GroupDatagram& out) {
    GroupDatagramHeader& head = out.head;
    if (bytes < GroupDatagramHeader::kShort) return false;
    head = {};
    std::memcpy(&head, data, GroupDatagramHeader::kShort);
    const uint32_t carried = header_bytes(head);
    if (bytes < carried) return false;
    std::memcpy(&head, data, carried);
    out.body = data + carried;
    out.bytes = static_cast<uint32_t>(bytes - carried);
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
