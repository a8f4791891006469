// Encryption of the session's datagrams. The first 32 bytes of the header, which routing needs, are not encrypted; all bytes after them
// are. A datagram that was changed in any part, forged or replayed is dropped. docs/network.md has the layout and the attacks it defends
// against.
#pragma once

#include <cstddef>
#include <cstdint>

#include "job/job_description.h"
#include "transport/network/crypto/cipher.h"
#include "transport/network/session/session.h"
#include "transport/network/wire/datagram.h"

namespace starling::network {

/// Header versions of sealed datagrams, one for each cipher.
inline constexpr uint8_t kSealedVersion[] = {2, 3};
/// Flag of a sealed datagram: the sender can also open AES. The flag is authenticated, like all bytes that are not encrypted.
inline constexpr uint8_t kOpensAes = 128;
/// Bytes of a sealed datagram that are not encrypted.
inline constexpr uint32_t kClearHead = offsetof(DatagramHeader, epoch);
static_assert(kClearHead == 32);

/// The last bytes of a sealed datagram.
struct SealTrailer {
    uint64_t salt;    ///< the sender's salt for datagrams to this peer
    uint64_t number;  ///< number of the datagram, used once with this salt
    std::byte tag[kSealTag];
};
static_assert(sizeof(SealTrailer) == 32);
inline constexpr uint32_t kSealBytes = sizeof(SealTrailer);

/// Returns the key shared by two processes, derived from the secrets of both jobs; the result is the same on both sides. All other keys are
/// derived from it.
SealKey pair_key(const Cipher& cipher, const PeerName& one, const job::NetworkSecret& secret_of_one, const PeerName& other,
                 const job::NetworkSecret& secret_of_other);

/// The recently received datagram numbers, by which replays are detected.
class ReplayWindow {
  public:
    /// Size of the window, in numbers. Datagrams on several rails overtake each other, but not by more than can be in flight.
    static constexpr uint64_t kNumbers = 4096;

    /// Returns whether the number was received, or is too old for the window.
    bool holds(uint64_t number) const;
    void add(uint64_t number);

  private:
    uint64_t last_ = 0;
    uint64_t bits_[kNumbers / 64] = {};  ///< number n is bit n % kNumbers
};

/// Seals datagrams to one process, and opens those from it.
///
/// A number is never used twice with one key. The key of each direction includes a random salt drawn when the lock is created. The numbers
/// count from 1 as long as the lock exists, whatever is sent: a retransmitted frame is sealed again with the next number. A process that
/// forgets its peer, or replaces another process, creates a new lock and so has another key.
class DatagramLock {
  public:
    DatagramLock(const Cipher& cipher, const SealKey& pair, const PeerName& self, const PeerName& peer);

    /// Seals a whole datagram in place. The buffer needs kSealBytes of space behind it.
    void seal(std::byte* datagram, uint32_t bytes);

    enum class Opened : uint8_t {
        yes,
        unauthenticated,  ///< the datagram was not sealed by a process of this pair, or was changed on the way
        stale,            ///< the datagram is a duplicate, or from an earlier process with the peer's name
    };
    /// Opens a datagram of this length in place; afterwards it is unsealed and kSealBytes shorter. `is_new` is set if the sender has
    /// restarted: its known addresses may be outdated.
    Opened open(std::byte* datagram, uint32_t bytes, bool& is_new);

    const SealKey& pair() const { return pair_; }

  private:
    ReadyKey key_of(Suite suite, const PeerName& from, uint64_t salt) const;

    const Cipher& cipher_;
    const SealKey pair_;
    const PeerName self_, peer_;
    uint64_t salt_, number_ = 0;
    Suite suite_ = Suite::chacha;  ///< cipher for sending; AES once the peer has announced that it can open it
    ReadyKey key_;
    uint64_t their_salt_ = 0, their_epoch_ = 0;  ///< salt and epoch of the peer's datagrams; 0: none was opened yet
    Suite their_suite_ = Suite::chacha;
    ReadyKey their_key_;
    ReplayWindow window_;
};

/// Returns whether the datagram looks like a sealed one for the process with this key and rank; if not, it should not be opened.
bool may_be_sealed(const std::byte* datagram, uint32_t bytes, uint64_t key, uint32_t rank);
/// Returns the sender that the header names. The name is not authenticated before the datagram is opened.
PeerName sender_of(const std::byte* datagram);

}  // namespace starling::network
