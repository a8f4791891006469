// Parses and builds the frames of a TCP socket. Makes no system calls: the callers read and write the bytes, in portions of any size.
//
// A frame is a prefix of 8 bytes, its contents, and zeros up to the next multiple of 8. So consecutive frames in one buffer are all
// aligned. Numbers are little-endian, the byte order of every supported machine.
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

enum class TcpFrameKind : uint8_t {
    session = 1,  ///< a frame of the session; its contents are opaque here
    fragment,     ///< fragment of a stream: a PieceHead, then the bytes
    addresses,    ///< addresses of the listening side's rails, 4 bytes each
    finish,       ///< last frame on a socket: without it the connection was cut off
};

struct FramePrefix {
    uint32_t bytes = 0;  ///< length of the contents
    TcpFrameKind kind = TcpFrameKind::session;
    uint8_t reserved = 0;
    uint16_t mark = kMark;  ///< constant by which a reader that lost the frame boundary is detected at once
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

/// The receiver of the contents of the frames that a FrameReader parses. If a function returns false the reader stops and accesses nothing
/// any more.
class FrameSink {
  public:
    virtual ~FrameSink() = default;
    virtual bool frame(TcpFrameKind kind, const std::byte* contents, size_t bytes) = 0;
    /// Implement ConnectionUpcalls::target, unpack and fragment, which are described there.
    virtual std::byte* target(const StreamFragment& fragment, uint64_t done, uint64_t bytes) = 0;
    virtual void unpack(const StreamFragment& fragment, uint64_t done, const std::byte* data, uint64_t bytes) = 0;
    virtual bool on_fragment(const StreamFragment& fragment) = 0;
};

/// The receiving end of a socket. Between two reads it stores only the beginning of an incomplete frame.
class FrameReader {
  public:
    static constexpr int kParts = 3;

    /// Fills in where the next bytes from the socket must be stored, and returns the number of parts, to be filled in order. Bytes of a
    /// fragment go directly to their destination, the rest into `buffer`. The buffer must be aligned to 8, have at least 4 KB, and stay
    /// valid until arrived().
    int prepare(FrameSink& sink, std::byte* buffer, size_t bytes, iovec (&parts)[kParts]);
    /// Parses `bytes` that were read into the prepared parts. Returns false if they are not valid frames, or the sink has returned false.
    bool arrived(FrameSink& sink, size_t bytes);

    /// Returns whether no frame is incomplete, so that the connection may end here.
    bool at_boundary() const { return stored_bytes_ == 0 && !in_fragment() && padding_ == 0; }
    bool in_fragment() const { return done_ < fragment_.bytes; }

  private:
    bool parse(FrameSink& sink, const std::byte* data, size_t bytes);
    bool parse_frame(FrameSink& sink, const std::byte*& data, size_t& bytes);
    bool begin_fragment(FrameSink& sink, const FramePrefix& prefix, const std::byte*& data, size_t& bytes);
    bool handle_fragment(FrameSink& sink, const std::byte*& data, size_t& bytes);
    void store(const std::byte* data, size_t bytes, size_t whole);

    StreamFragment fragment_;                ///< the fragment being received, if done_ < its bytes
    uint64_t done_ = 0;                      ///< number of bytes of fragment_ received so far
    uint32_t padding_ = 0;                   ///< padding bytes still expected
    uint32_t stored_bytes_ = 0, whole_ = 0;  ///< stored bytes of an incomplete frame; length of that frame (0: not known yet)
    std::byte start_[kPieceStart];           ///< stored bytes of the frame while whole_ is 0
    std::unique_ptr<std::byte[]> rest_;      ///< stored bytes of the frame while whole_ is known

    std::byte* buffer_ = nullptr;  ///< buffer passed to prepare(), valid until arrived()
    size_t direct_ = 0;            ///< number of prepared bytes outside the buffer
    enum class ReadTarget : uint8_t { buffer, fragment, frame } into_ = ReadTarget::buffer;
    std::byte scratch_[kFrameAlignment];
};

/// The sending end of a socket: data of begun frames that the kernel has not taken yet.
class FrameWriter {
  public:
    static constexpr int kParts = 3;

    bool busy() const { return fragment_left() > 0 || tail_at_ < tail_.size(); }
    /// Returns the stream whose fragment is being written, or null.
    const OutStream* stream() const { return fragment_left() > 0 ? stream_ : nullptr; }

    /// Begins a fragment. Precondition: not busy. `data` must stay valid until the fragment is written or the socket is closed.
    void begin_fragment(const OutStream& stream, StreamRange range, const std::byte* data);
    /// Replaces the rest of the fragment by zeros, so that the stream's memory is not read any more. The receiver has the whole stream by
    /// another path and ignores the rest.
    void blank_fragment();
    /// Copies the part of a frame that the kernel did not take. Precondition: not busy.
    void store_tail(const iovec* parts, int count, size_t taken);
    /// Fills in the data to be written next. Returns the number of parts, 0 if nothing waits.
    int gather(iovec (&parts)[kParts]) const;
    void wrote(size_t bytes);

  private:
    uint64_t fragment_left() const { return fragment_total_ - fragment_done_; }

    const OutStream* stream_ = nullptr;
    const std::byte* data_ = nullptr;
    uint64_t data_bytes_ = 0;
    uint64_t fragment_total_ = 0, fragment_done_ = 0;  ///< bytes of the fragment with head and padding: in total, and written
    std::byte head_[kPieceStart];
    std::vector<std::byte> tail_;
    size_t tail_at_ = 0;
};

}  // namespace starling::network
