// Datagrams under seal. What a router of datagrams needs stays readable, the first 32 bytes of the header; all behind it is secret, and
// nothing of it can be changed, made up, or brought twice. docs/network.md has the layout and what it defends against.
#pragma once

#include <cstddef>
#include <cstdint>

#include "job/job_description.h"
#include "transport/network/crypto/cipher.h"
#include "transport/network/session/session.h"
#include "transport/network/wire/datagram.h"

namespace starling::network {

/// Of datagrams sealed by either cipher.
inline constexpr uint8_t kSealedVersion[] = {2, 3};
/// In the flags of a sealed datagram: the sender can open AES as well. Authenticated, as all that stays readable.
inline constexpr uint8_t kOpensAes = 128;
/// Bytes of a sealed datagram that stay readable.
inline constexpr uint32_t kClearHead = offsetof(DatagramHeader, epoch);
static_assert(kClearHead == 32);

/// Last in a sealed datagram.
struct SealTrailer {
    uint64_t salt;    ///< the sender's, of this pair
    uint64_t number;  ///< of the datagram, with this salt
    std::byte tag[kSealTag];
};
static_assert(sizeof(SealTrailer) == 32);
inline constexpr uint32_t kSealBytes = sizeof(SealTrailer);

/// The key that two processes have, made of both jobs' secrets; the same on either side. All others are made of it.
SealKey pair_key(const Cipher& cipher, const Name& one, const job::NetworkSecret& secret_of_one, const Name& other,
                 const job::NetworkSecret& secret_of_other);

/// Which of the last numbers have come.
class ReplayWindow {
  public:
    /// Datagrams overtake each other on several rails, but not by more than may be under way.
    static constexpr uint64_t kNumbers = 4096;

    /// Whether it has come, or is so old that nobody knows.
    bool holds(uint64_t number) const;
    void add(uint64_t number);

  private:
    uint64_t last_ = 0;
    uint64_t bits_[kNumbers / 64] = {};  ///< number n at bit n % kNumbers
};

/// What seals datagrams to one process, and opens those from it.
///
/// A number is never used twice with a key: the key of each direction has a random salt in it that is drawn when the lock is made, and
/// numbers count from 1 as long as the lock exists, whatever is sent: bytes that are sent again are sealed again, with the next number. Who forgets
/// a process and meets it anew, or takes the place of another, makes a new lock, and so has another key.
class DatagramLock {
  public:
    DatagramLock(const Cipher& cipher, const SealKey& pair, const Name& self, const Name& peer);

    /// Seals a whole datagram in place; kSealBytes of room are behind it.
    void seal(std::byte* datagram, uint32_t bytes);

    enum class Opened : uint8_t {
        yes,
        stranger,  ///< nobody of this pair has sealed it, or it was changed on the way
        stale,     ///< it has come before, or is from an earlier process in the peer's place
    };
    /// Opens a datagram of this length in place; it then is a plain one, kSealBytes shorter. `is_new`: its sender has begun
    /// anew, and nothing that was known of where it is needs to hold.
    Opened open(std::byte* datagram, uint32_t bytes, bool& is_new);

    const SealKey& pair() const { return pair_; }

  private:
    ReadyKey key_of(Suite suite, const Name& from, uint64_t salt) const;

    const Cipher& cipher_;
    const SealKey pair_;
    const Name self_, peer_;
    uint64_t salt_, number_ = 0;
    Suite suite_ = Suite::chacha;  ///< what is sent with; AES once the peer has said that it can open it
    ReadyKey key_;
    uint64_t their_salt_ = 0, their_epoch_ = 0;  ///< 0: nothing was opened yet
    Suite their_suite_ = Suite::chacha;
    ReadyKey their_key_;
    ReplayWindow window_;
};

/// Whether it looks like a sealed datagram for the process with this key and rank: only then is it worth opening.
bool may_be_sealed(const std::byte* datagram, uint32_t bytes, uint64_t key, uint32_t rank);
/// Who it says it is from; not to be believed before it is opened.
Name sender_of(const std::byte* datagram);

}  // namespace starling::network
