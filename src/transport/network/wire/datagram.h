// The wire format of the base path: a datagram, or a frame on a connection. Numbers are little-endian, like the processors that Starling
// runs on. docs/network.md has the offsets in a table.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling::network {

namespace datagram_flag {
enum : uint8_t {
    kAckNow = 1,      ///< the sender waits for an acknowledgement, which must not be delayed
    kIntroduce = 2,   ///< an Introduction follows the header, since the peer has not acknowledged anything yet
    kMoreRanges = 4,  ///< there were more ranges to acknowledge than the datagram holds
    kTwice = 8,       ///< duplicate bytes arrived since the last acknowledgement: the retransmitted data had not been lost
    kAll = 15,
};
}

/// The header of every datagram. `epoch` identifies the incarnation of a stream: each new stream has a greater number.
struct DatagramHeader {
    static constexpr uint16_t kMagic = 0x7453;  // "St"
    static constexpr uint8_t kVersion = 1;

    uint16_t magic;
    uint8_t version;
    uint8_t flags;
    uint32_t bytes;         ///< length of the whole datagram
    uint64_t key;           ///< key of the target's job on its host: proves that the sender belongs to the universe
    uint64_t job;           ///< job of the sender
    uint32_t rank;          ///< rank of the sender
    uint32_t target_rank;   ///< rank of the target in the job that the key belongs to
    uint64_t epoch;         ///< epoch of the sender's stream
    uint64_t target_epoch;  ///< epoch of the target's stream, to which `ack` refers; 0: unknown to the sender
    uint64_t offset;        ///< stream offset of the first stream byte in this datagram
    uint64_t ack;           ///< stream offset below which every byte of the target's stream has arrived
    uint32_t number;        ///< number of this datagram, counted per session; 0: requires no acknowledgement
    uint32_t echo;          ///< number of the last datagram that arrived; 0: none since the last echo
    uint32_t echo_delay;    ///< time since the echoed datagram arrived, us
    uint16_t window;        ///< number of bytes beyond `ack` that the sender accepts, in units of kWindowUnit
    uint8_t ranges;         ///< number of ranges that follow the header and the introduction
    uint8_t hold;  ///< permitted delay of the acknowledgement beyond kAckDelay, in units of kAckDelay; at most kMostHold
};
static_assert(sizeof(DatagramHeader) == 80);
inline constexpr uint8_t kMostHold = 31;
inline constexpr uint32_t kWindowUnit = 256;

/// The data that a process needs to answer a sender it does not know.
struct Introduction {
    uint64_t key;  ///< the key that datagrams to the sender must carry
};
static_assert(sizeof(Introduction) == 8);

/// A selective acknowledgement: bytes that arrived beyond the cumulative acknowledgement.
struct AckRange {
    uint32_t start;   ///< offset of the first byte, relative to `ack`
    uint32_t length;  ///< number of bytes, not 0
};
static_assert(sizeof(AckRange) == 8);

/// The most ranges in one datagram; they are ascending and do not touch.
inline constexpr int kMostRanges = 16;
/// Stream bytes come in multiples of this, so that packets lie aligned in datagrams.
inline constexpr uint32_t kGrain = 8;
/// The longest frame, bytes: a packet of the longest payload behind the longest header.
inline constexpr uint32_t kMostFrame = 80 + 8 + 8 * kMostRanges + 32 + 64 * 1024;

/// A decoded datagram. Points into the bytes from which it was decoded.
struct Datagram {
    DatagramHeader header;
    Introduction introduction;  ///< the sender's introduction; zeros if there is none
    const AckRange* ranges;     ///< the ranges, header.ranges of them
    const std::byte* stream;    ///< stream bytes; header.offset is the stream offset of the first byte
    uint32_t stream_bytes;
};

/// Decodes `bytes` bytes; `data` must be aligned to 8 bytes. Returns false if they are cut short or not a datagram of this version. Also
/// returns false for invalid contents: a reserved bit, ranges out of order, stream bytes that are not a multiple of kGrain.
bool decode(const std::byte* data, size_t bytes, Datagram& out);

}  // namespace starling::network
