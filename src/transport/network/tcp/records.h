// Encrypted records of a TCP socket. Each record is opened as a whole, or the socket is closed. Makes no system calls, like frames.h. The
// records carry a stream of frames: a frame may span several records, and a record may contain several frames.
//
// A record is the length of its text (4 bytes, not encrypted), the text, and a tag. The record number is not sent: both sides count. So a
// record that is omitted, repeated or moved does not open. A number is never used twice with one key, since the keys belong to one socket:
// they are derived from fresh salts of both sides (handshake.h).
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "transport/network/crypto/cipher.h"

namespace starling::network {

/// Bytes of the longest text. The receiver needs the whole record before it can open any of it.
inline constexpr uint32_t kRecordText = 16 * 1024;
inline constexpr uint32_t kRecordHead = 4;
inline constexpr uint32_t kRecordAround = kRecordHead + kSealTag;

/// Maximum number of records that are sealed, or received, at a time.
inline constexpr size_t kRecordsAtOnce = 8;

/// The sending end: seals what is written to the socket.
class RecordSealer {
  public:
    RecordSealer(const Cipher& cipher, ReadyKey key) : cipher_(cipher), key_(std::move(key)) {}

    /// Seals bytes of the parts, beginning after the first `skip` bytes. Returns how many it took; 0 while earlier records are still
    /// pending.
    size_t seal(const iovec* parts, int count, size_t skip);
    /// Returns the sealed bytes that are to be written to the socket.
    Bytes pending() const { return {bytes_.get() + begin_, end_ - begin_}; }
    void wrote(size_t bytes) { begin_ += bytes; }

  private:
    const Cipher& cipher_;
    const ReadyKey key_;
    uint64_t number_ = 0;
    std::unique_ptr<std::byte[]> bytes_;
    size_t begin_ = 0, end_ = 0;
};

/// The receiving end: opens the records read from the socket.
class RecordOpener {
  public:
    RecordOpener(const Cipher& cipher, ReadyKey key) : cipher_(cipher), key_(std::move(key)) {}

    /// Returns the buffer into which the next bytes of the socket are to be read; never empty.
    std::span<std::byte> room();
    void arrived(size_t bytes) { end_ += bytes; }

    enum class RecordReadResult : uint8_t { need_more, text, garbage };
    /// Returns the text of the next record, valid until room(). After an invalid record all further ones are invalid, too.
    RecordReadResult next(Bytes& text);
    /// Returns whether no record is incomplete.
    bool at_boundary() const { return begin_ == end_; }

  private:
    const Cipher& cipher_;
    const ReadyKey key_;
    uint64_t number_ = 0;
    std::unique_ptr<std::byte[]> bytes_;
    size_t begin_ = 0, end_ = 0;
    bool garbage_ = false;
};

}  // namespace starling::network
