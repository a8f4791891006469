// The bytes of a TCP socket under seal: cut into records, each of which is opened as a whole or ends the socket. Pure, as frames.h,
// whose frames are in the records: a frame may lie in several records, and a record hold several frames.
//
// A record is the length of its text (4 bytes, which stay readable), the text, and a tag. Its number is not sent: either side counts,
// so that one that is left out, repeated or moved does not open. A number is used once with a key, since the keys of a socket are
// made for it alone: both sides' fresh salts are in them (handshake.h).
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "transport/network/crypto/cipher.h"

namespace starling::network {

/// Bytes of the longest text: that much the other side must have before it can open any of it.
inline constexpr uint32_t kRecordText = 16 * 1024;
inline constexpr uint32_t kRecordHead = 4;
inline constexpr uint32_t kRecordAround = kRecordHead + kSealTag;

/// Records that are put together, or have come, at a time.
inline constexpr size_t kRecordsAtOnce = 8;

/// The sending end.
class RecordSealer {
  public:
    RecordSealer(const Cipher& cipher, ReadyKey key) : cipher_(cipher), key_(std::move(key)) {}

    /// Takes what it can of the parts behind the first `skip` bytes. Gives how much; 0 if there is something yet to be written.
    size_t seal(const iovec* parts, int count, size_t skip);
    /// What is to be written to the socket.
    Bytes pending() const { return {bytes_.get() + begin_, end_ - begin_}; }
    void wrote(size_t bytes) { begin_ += bytes; }

  private:
    const Cipher& cipher_;
    const ReadyKey key_;
    uint64_t number_ = 0;
    std::unique_ptr<std::byte[]> bytes_;
    size_t begin_ = 0, end_ = 0;
};

/// The receiving end.
class RecordOpener {
  public:
    RecordOpener(const Cipher& cipher, ReadyKey key) : cipher_(cipher), key_(std::move(key)) {}

    /// Where the next bytes of the socket go; never empty.
    std::span<std::byte> room();
    void arrived(size_t bytes) { end_ += bytes; }

    enum class Result : uint8_t { need_more, text, garbage };
    /// The text of the next record, valid until room(). After garbage nothing comes any more.
    Result next(Bytes& text);
    /// Nothing of a record has come whose rest is missing.
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
