// Frames on a TCP socket: the byte stream taken apart and put together. Pure: bytes come from and go to whatever reads
// and writes them, in portions of any size.
//
// A frame is a prefix of 8 bytes, its contents, and zeros up to the next multiple of 8, so that every frame starts
// aligned wherever frames are read one behind the other. Numbers are little-endian, as on every machine this is for.
#pragma once

#include <sys/uio.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "transport/network/tcp/tcp.h"

namespace starling::network {

static_assert(std::endian::native == std::endian::little, "frames are written as they lie in memory");

enum class FrameKind : uint8_t {
    session = 1,  ///< opaque
    piece,        ///< PieceHead, then bytes of a stream
    addresses,    ///< of the rails of the side that listens, 4 bytes each
    finish,       ///< the last: a stream that ends without it has been cut off
};

struct FramePrefix {
    uint32_t bytes = 0;  ///< of contents
    FrameKind kind = FrameKind::session;
    uint8_t reserved = 0;
    uint16_t mark = kMark;  ///< so that a stream gone wrong is noticed at once
    static constexpr uint16_t kMark = 0x5afe;
};
static_assert(sizeof(FramePrefix) == 8);

struct PieceHead {
    uint32_t serial, generation;
    uint64_t offset;
};
static_assert(sizeof(PieceHead) == 16);

inline constexpr uint32_t kFinishBytes = 8;  ///< zeros
inline constexpr uint64_t kLongestPiece = 16u << 20;
inline constexpr uint64_t kFrameAlignment = 8;
inline constexpr size_t kPieceStart = sizeof(FramePrefix) + sizeof(PieceHead);
inline uint64_t frame_padding(uint64_t bytes) { return -bytes % kFrameAlignment; }

/// What a reader does with what it reads. A false ends the reading: nothing of it is touched any more.
class FrameSink {
  public:
    virtual ~FrameSink() = default;
    virtual bool frame(FrameKind kind, const std::byte* contents, size_t bytes) = 0;
    /// As TcpUpcalls::target, unpack and piece.
    virtual std::byte* target(const StreamFragment& piece, uint64_t done, uint64_t bytes) = 0;
    virtual void unpack(const StreamFragment& piece, uint64_t done, const std::byte* data, uint64_t bytes) = 0;
    virtual bool piece(const StreamFragment& piece) = 0;
};

/// The receiving end of a socket. What a socket has of its own between reads is only the beginning of a frame.
class FrameReader {
  public:
    static constexpr int kParts = 3;

    /// Where the next bytes go: parts filled one after the other. `buffer`, aligned to 8 and at least 4 KB long, is lent
    /// until arrived(). Gives how many parts. Bytes of a piece go where they belong, the rest into the buffer.
    int prepare(FrameSink& sink, std::byte* buffer, size_t bytes, iovec (&parts)[kParts]);
    /// `bytes` of the prepared room have been filled. False: the stream is not one of frames, or the sink said so.
    bool arrived(FrameSink& sink, size_t bytes);

    /// Nothing of a frame has come whose rest is missing: the stream may end here.
    bool at_boundary() const { return kept_bytes_ == 0 && !in_piece() && padding_ == 0; }
    bool in_piece() const { return done_ < piece_.bytes; }

  private:
    bool parse(FrameSink& sink, const std::byte* data, size_t bytes);
    bool parse_frame(FrameSink& sink, const std::byte*& data, size_t& bytes);
    bool begin_piece(FrameSink& sink, const FramePrefix& prefix, const std::byte*& data, size_t& bytes);
    bool take_piece(FrameSink& sink, const std::byte*& data, size_t& bytes);
    void keep(const std::byte* data, size_t bytes, size_t whole);

    StreamFragment piece_;                 ///< the one that is coming, if done_ < bytes
    uint64_t done_ = 0;                    ///< of it
    uint32_t padding_ = 0;                 ///< still to come behind it
    uint32_t kept_bytes_ = 0, whole_ = 0;  ///< of a frame's beginning; whole_ 0: not known yet
    std::byte start_[kPieceStart];         ///< the beginning while whole_ is 0
    std::unique_ptr<std::byte[]> rest_;    ///< the beginning while whole_ is known

    std::byte* buffer_ = nullptr;  ///< during prepare() … arrived()
    size_t direct_ = 0;            ///< room outside the buffer
    enum class Into : uint8_t { buffer, piece, frame } into_ = Into::buffer;
    std::byte scratch_[kFrameAlignment];
};

/// The sending end of a socket: what it has begun and the kernel did not take yet.
class FrameWriter {
  public:
    static constexpr int kParts = 3;

    bool busy() const { return piece_left() > 0 || tail_at_ < tail_.size(); }
    /// The stream whose piece is being written, null if none.
    const OutStream* stream() const { return piece_left() > 0 ? stream_ : nullptr; }

    /// Begins a piece; only if not busy. `data` stays valid until it is written, or the socket dies.
    void begin_piece(const OutStream& stream, StreamRange range, const std::byte* data);
    /// The receiver has got all of the stream another way, and looks at the rest of its piece no more: zeros will do. Its
    /// memory is not read after this.
    void empty_piece();
    /// Keeps what the kernel did not take of a frame; only if not busy.
    void keep_tail(const iovec* parts, int count, size_t taken);
    /// What is to be written next. Gives how many parts, 0 if not busy.
    int gather(iovec (&parts)[kParts]) const;
    void wrote(size_t bytes);

  private:
    uint64_t piece_left() const { return piece_total_ - piece_done_; }

    const OutStream* stream_ = nullptr;
    const std::byte* data_ = nullptr;
    uint64_t data_bytes_ = 0;
    uint64_t piece_total_ = 0, piece_done_ = 0;  ///< with head and padding
    std::byte head_[kPieceStart];
    std::vector<std::byte> tail_;
    size_t tail_at_ = 0;
};

}  // namespace starling::network
