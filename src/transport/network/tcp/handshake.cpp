#include "transport/network/tcp/handshake.h"

#include <cstdio>
#include <cstring>

#include "base/random.h"
#include "base/state.h"

namespace starling::network {

GreetingSalt draw_greeting_salt() {
    GreetingSalt salt;
    draw_random(salt.bytes, sizeof salt.bytes);
    return salt;
}

GreetingKeys keys_of(const Cipher& cipher, const SealKey& pair, const SealedHello& hello, const SealedWelcome& welcome) {
    const Bytes texts[] = {bytes_of(hello), bytes_of(welcome.welcome), bytes_of(welcome.salt)};
    const auto make = [&](const char* purpose) { return cipher.derive(bytes_of(pair), purpose, texts); };
    const auto prove = [&](const char* purpose) {
        GreetingProof proof;
        std::memcpy(proof.bytes, make(purpose).bytes, sizeof proof.bytes);
        return proof;
    };
    return {make("starling tcp caller"), make("starling tcp listener"), prove("starling tcp caller's proof"),
            prove("starling tcp listener's proof")};
}

Greeting classify(const TcpHello& hello, const ProcessId& self, uint64_t key, uint16_t version) {
    if (hello.magic != TcpHello::kMagic) return Greeting::stranger;
    if (hello.version != version) return Greeting::other_version;
    const bool for_us = hello.target_job == self.job && hello.target_rank == self.rank && hello.key == key;
    return for_us ? Greeting::fits : Greeting::stranger;
}

const char* refusal(const TcpWelcome& welcome, uint64_t own_key, uint16_t version) {
    if (welcome.magic != TcpWelcome::kMagic) return "a program other than Starling answered";
    switch (welcome.answer) {
        case HandshakeAnswer::welcome:
            break;
        case HandshakeAnswer::wrong_version: {
            STARLING_STATE static char text[96];
            std::snprintf(text, sizeof text, "it has version %u of the connection protocol, this process has version %u",
                          welcome.version, version);
            return text;
        }
        case HandshakeAnswer::not_expected:
            return "it no longer expects this connection";
        case HandshakeAnswer::too_many:
            return "it already has as many sockets as it allows";
        default:
            return "its answer is malformed";
    }
    return welcome.key == own_key ? nullptr : "another process answered";
}

}  // namespace starling::network
