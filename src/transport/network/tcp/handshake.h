// The greeting on a TCP socket. The caller sends a TcpHello (its identity, the process that it calls, the offer's token), and the listener
// replies with a TcpWelcome. Sizes are fixed, so garbage is detected after at most 48 bytes. Makes no system calls.
//
// Where processes encrypt, each side adds a salt and proves that it has the pair's key. A proof is derived from the key and everything sent
// before: first the listener's, in its TcpWelcome, then the caller's. Only then does the socket belong to the connection. The keys of its
// records are derived from the same input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "transport/network/crypto/cipher.h"
#include "transport/network/tcp/tcp.h"

namespace starling::network {

inline constexpr uint16_t kTcpVersion = 1, kSealedTcpVersion = 2;

/// The first message of the side that connects.
struct TcpHello {
    uint32_t magic = kMagic;
    uint16_t version = kTcpVersion;
    uint16_t opens_aes = 0;  ///< 1: the caller supports AES (only with encryption)
    job::JobId job = 0, target_job = 0;
    uint32_t rank = 0, target_rank = 0;
    uint64_t key = 0;                               ///< key of the target, which the target checks
    uint64_t token = 0;                             ///< token of the target's offer
    static constexpr uint32_t kMagic = 0x706c7473;  // "stlp"
};
static_assert(sizeof(TcpHello) == 48 && std::has_unique_object_representations_v<TcpHello>);

enum class HandshakeAnswer : uint8_t { welcome = 1, wrong_version, not_expected, too_many };

/// The reply of the side that listens.
struct TcpWelcome {
    uint32_t magic = kMagic;
    uint16_t version = kTcpVersion;
    HandshakeAnswer answer = HandshakeAnswer::welcome;
    uint8_t uses_aes = 0;                           ///< 1: both sides use AES
    uint64_t key = 0;                               ///< the key that the caller expects; only the sender of the offer knows it
    static constexpr uint32_t kMagic = 0x776c7473;  // "stlw"
};
static_assert(sizeof(TcpWelcome) == 16 && std::has_unique_object_representations_v<TcpWelcome>);

struct GreetingSalt {
    uint8_t bytes[16] = {};
};
GreetingSalt draw_greeting_salt();
struct GreetingProof {
    uint8_t bytes[16] = {};
};

/// The TcpHello of processes that encrypt.
struct SealedHello {
    TcpHello hello;
    GreetingSalt salt;
};
static_assert(sizeof(SealedHello) == 64 && std::has_unique_object_representations_v<SealedHello>);

/// The TcpWelcome of processes that encrypt. The caller sends its own proof next.
struct SealedWelcome {
    TcpWelcome welcome;
    GreetingSalt salt;
    GreetingProof proof;  ///< proof of the listener
};
static_assert(sizeof(SealedWelcome) == 48 && std::has_unique_object_representations_v<SealedWelcome>);

/// The results of a greeting: the keys of the two directions, named by their sender, and the proofs that the sides send.
struct GreetingKeys {
    SealKey caller, listener;
    GreetingProof caller_proof, listener_proof;
};
GreetingKeys keys_of(const Cipher& cipher, const SealKey& pair, const SealedHello& hello, const SealedWelcome& welcome);

/// The result of classify(), which checks that `hello` has this version and is for process `self` with this key.
enum class Greeting : uint8_t { fits, other_version, stranger };
Greeting classify(const TcpHello& hello, const ProcessId& self, uint64_t key, uint16_t version = kTcpVersion);

/// Returns nullptr if `welcome` accepts the caller, else the reason: the end of a sentence, in a static buffer where it names a version.
const char* refusal(const TcpWelcome& welcome, uint64_t own_key, uint16_t version = kTcpVersion);

}  // namespace starling::network
