// The wire format of the base path: what one datagram (or one frame on a connection) looks like. Numbers are
// little-endian, as the processors are that Starling runs on; docs/network.md has the offsets in a table.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling::network {

namespace datagram_flag {
enum : uint8_t {
    kAckNow = 1,      ///< the sender waits for an acknowledgement: don't hold it back
    kIntroduce = 2,   ///< an Introduction follows the header: the receiver has not been heard of yet
    kMoreRanges = 4,  ///< there were more ranges than the datagram holds
    kTwice = 8,       ///< something that came since the last answer had come before: what was repeated had not been lost
    kAll = 15,
};
}

/// First in every datagram. `epoch` names the incarnation of a stream: whoever starts one anew takes a later number.
struct DatagramHeader {
    static constexpr uint16_t kMagic = 0x7453;  // "St"
    static constexpr uint8_t kVersion = 1;

    uint16_t magic;
    uint8_t version;
    uint8_t flags;
    uint32_t bytes;         ///< of the whole datagram
    uint64_t key;           ///< the target's: proves that the sender belongs to the universe
    uint64_t job;           ///< of the sender
    uint32_t rank;          ///< of the sender
    uint32_t target_rank;   ///< in the job that the key belongs to
    uint64_t epoch;         ///< of the sender's stream
    uint64_t target_epoch;  ///< of the stream that `ack` is about; 0: none heard of yet
    uint64_t offset;        ///< of the first stream byte in this datagram
    uint64_t ack;           ///< every byte of the other stream below this has arrived
    uint32_t number;        ///< of this datagram, counted per session; 0: wants no acknowledgement
    uint32_t echo;          ///< the last numbered datagram that arrived; 0: none since the last echo
    uint32_t echo_delay;    ///< how long ago that was, us
    uint16_t window;        ///< bytes beyond `ack` that the sender of this takes, in units of kWindowUnit
    uint8_t ranges;         ///< how many ranges follow the header and the introduction
    uint8_t hold;  ///< longer than kAckDelay the acknowledgement may wait for company, in units of that; at most kMostHold
};
static_assert(sizeof(DatagramHeader) == 80);
inline constexpr uint8_t kMostHold = 31;
inline constexpr uint32_t kWindowUnit = 256;

/// What a process needs to answer one that it has never heard of.
struct Introduction {
    uint64_t key;  ///< what datagrams to the sender must show
};
static_assert(sizeof(Introduction) == 8);

/// Bytes that arrived beyond the cumulative acknowledgement (a selective acknowledgement).
struct AckRange {
    uint32_t start;   ///< relative to `ack`
    uint32_t length;  ///< not 0
};
static_assert(sizeof(AckRange) == 8);

/// Ranges in one datagram at most; ascending, not touching each other.
inline constexpr int kMostRanges = 16;
/// Stream bytes come in multiples of this, so that packets lie aligned in datagrams.
inline constexpr uint32_t kGrain = 8;
/// The longest frame: a packet of the longest payload behind the longest header.
inline constexpr uint32_t kMostFrame = 80 + 8 + 8 * kMostRanges + 32 + 64 * 1024;

/// A datagram taken apart. Points into the bytes it was made from.
struct Datagram {
    DatagramHeader header;
    Introduction introduction;  ///< zeros if there is none
    const AckRange* ranges;     ///< header.ranges of them
    const std::byte* stream;    ///< header.offset is the first one's place
    uint32_t stream_bytes;
};

/// Takes `bytes` apart; `data` must be aligned to 8. False if it is not a datagram of this version, is cut short, or says
/// things that no sender says (a reserved bit, ranges out of order, bytes that are not a multiple of kGrain).
bool decode(const std::byte* data, size_t bytes, Datagram& out);

}  // namespace starling::network
