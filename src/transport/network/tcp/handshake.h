// The first words on a TCP socket: who calls, whom, and by which offer; and the answer. Fixed sizes, so that garbage is
// known as such after 48 bytes at most. Pure.
//
// Where processes encrypt, either side adds a salt and shows that it has the pair's key, by what is made of it and all that was said
// before: first the one that listens, in its answer, then the one that has connected. Only then does the socket belong to the
// connection. From the same the keys of its records are made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "transport/network/crypto/cipher.h"
#include "transport/network/tcp/tcp.h"

namespace starling::network {

inline constexpr uint16_t kTcpVersion = 1, kSealedTcpVersion = 2;

/// From the one that connects.
struct Hello {
    uint32_t magic = kMagic;
    uint16_t version = kTcpVersion;
    uint16_t opens_aes = 0;  ///< 1: the caller can do AES (where processes encrypt)
    job::JobId job = 0, target_job = 0;
    uint32_t rank = 0, target_rank = 0;
    uint64_t key = 0;                               ///< that the target wants to be shown
    uint64_t token = 0;                             ///< of the target's offer
    static constexpr uint32_t kMagic = 0x706c7473;  // "stlp"
};
static_assert(sizeof(Hello) == 48 && std::has_unique_object_representations_v<Hello>);

enum class Answer : uint8_t { welcome = 1, wrong_version, not_expected, too_many };

/// From the one that listens.
struct Welcome {
    uint32_t magic = kMagic;
    uint16_t version = kTcpVersion;
    Answer answer = Answer::welcome;
    uint8_t uses_aes = 0;  ///< 1: so both do
    uint64_t key = 0;      ///< what the caller's job wants to be shown: the listener is whom the offer came from
    static constexpr uint32_t kMagic = 0x776c7473;  // "stlw"
};
static_assert(sizeof(Welcome) == 16 && std::has_unique_object_representations_v<Welcome>);

struct GreetingSalt {
    uint8_t bytes[16] = {};
};
GreetingSalt draw_greeting_salt();
struct GreetingProof {
    uint8_t bytes[16] = {};
};

/// As Hello, where processes encrypt.
struct SealedHello {
    Hello hello;
    GreetingSalt salt;
};
static_assert(sizeof(SealedHello) == 64 && std::has_unique_object_representations_v<SealedHello>);

/// As Welcome. The caller says its own proof next.
struct SealedWelcome {
    Welcome welcome;
    GreetingSalt salt;
    GreetingProof proof;  ///< of the one that listens
};
static_assert(sizeof(SealedWelcome) == 48 && std::has_unique_object_representations_v<SealedWelcome>);

/// What a greeting leads to: the keys of the two directions, named by who sends, and what either side shows.
struct GreetingKeys {
    SealKey caller, listener;
    GreetingProof caller_proof, listener_proof;
};
GreetingKeys keys_of(const Cipher& cipher, const SealKey& pair, const SealedHello& hello, const SealedWelcome& welcome);

/// Whether `hello` is one of this version, of any caller, for `self`.
enum class Greeting : uint8_t { fits, other_version, stranger };
Greeting judge(const Hello& hello, const ProcessId& self, uint64_t key, uint16_t version = kTcpVersion);

/// nullptr if `welcome` lets the caller in, else why not (a sentence's end, in a static buffer where the version is told).
const char* refusal(const Welcome& welcome, uint64_t own_key, uint16_t version = kTcpVersion);

}  // namespace starling::network
