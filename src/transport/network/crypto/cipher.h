// The ciphers that seal traffic between hosts, ChaCha20-Poly1305 (RFC 8439) and AES-256-GCM, and the hash BLAKE2b, which derives their
// keys. All are libsodium's. The library is loaded on first use, so a process whose job neither encrypts nor uses groups loads no
// cryptography.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace starling::network {

/// 256 random bits, or a key derived from them.
struct SealKey {
    uint8_t bytes[32] = {};
    bool operator==(const SealKey&) const = default;
};

/// The ciphers. Every process supports ChaCha20. AES is faster, and available where the processor has instructions for it.
enum class Suite : uint8_t { chacha, aes };

/// A key prepared for one of the ciphers.
struct ReadyKey {
    struct alignas(16) Expanded {
        uint8_t bytes[512];
    };
    SealKey key;                         ///< the ChaCha20 key
    std::unique_ptr<Expanded> expanded;  ///< the AES key schedule; null: ChaCha20
};

inline constexpr size_t kSealTag = 16;

using Bytes = std::span<const std::byte>;
/// Returns the bytes of a value whose type has no padding.
template <class Value>
Bytes bytes_of(const Value& value) {
    return std::as_bytes(std::span(&value, 1));
}

/// A loaded libsodium. Thread-safe, since it is constant after load().
class Cipher {
  public:
    /// Loads libsodium. `setting` is the user's setting that requires it, for the message. Returns MPI_ERR_OTHER with failure_text() if
    /// libsodium is not installed.
    static int load(std::unique_ptr<Cipher>& out, const char* setting = "STARLING_ENCRYPTION=on");
    virtual ~Cipher() = default;

    /// Whether AES is available on this processor. Tests may clear it.
    bool has_aes = false;
    virtual ReadyKey prepare(Suite suite, const SealKey& key) const = 0;

    /// Encrypts `text` in place and writes the tag, by which open() detects any change of `text` or `clear`. `clear` is authenticated but
    /// not encrypted. A number must never be used twice with one key.
    virtual void seal(const ReadyKey& key, uint64_t number, Bytes clear, std::span<std::byte> text, std::byte* tag) const = 0;
    /// Decrypts `text` in place. Returns false, with `text` destroyed, if it was not sealed with this key and number.
    virtual bool open(const ReadyKey& key, uint64_t number, Bytes clear, std::span<std::byte> text,
                      const std::byte* tag) const = 0;
    /// Derives a key from a key of 32 or 64 bytes. Equal inputs give equal keys, and the result reveals nothing about its parent. `purpose`
    /// is hashed with its final zero and separates keys for different uses.
    virtual SealKey derive(Bytes key, const char* purpose, std::span<const Bytes> texts) const = 0;
    /// Returns whether the bytes are equal, in a time that does not depend on where they differ.
    virtual bool equal(const void* a, const void* b, size_t bytes) const = 0;
};

}  // namespace starling::network
