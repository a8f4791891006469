// The ciphers that seal what goes between hosts, ChaCha20-Poly1305 (RFC 8439) and AES-256-GCM, and BLAKE2b, which makes their keys:
// libsodium's. The library is loaded by the first who needs it, so a process whose job neither encrypts nor uses groups has no cryptography in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace starling::network {

/// 256 bits that nobody can guess, or that were made of such.
struct SealKey {
    uint8_t bytes[32] = {};
    bool operator==(const SealKey&) const = default;
};

/// Every process can do ChaCha20; AES, which is faster, where the processor has instructions for it.
enum class Suite : uint8_t { chacha, aes };

/// A key for one of the ciphers, ready for use.
struct ReadyKey {
    struct alignas(16) Expanded {
        uint8_t bytes[512];
    };
    SealKey key;                         ///< of ChaCha20
    std::unique_ptr<Expanded> expanded;  ///< of AES; null: it is the other
};

inline constexpr size_t kSealTag = 16;

using Bytes = std::span<const std::byte>;
/// The bytes of a value that has no gaps.
template <class Value>
Bytes bytes_of(const Value& value) {
    return std::as_bytes(std::span(&value, 1));
}

/// Thread-safe: nothing in it changes.
class Cipher {
  public:
    /// `setting` is what the user has set, and needs it. MPI_ERR_OTHER with failure_text() where libsodium is not installed.
    static int load(std::unique_ptr<Cipher>& out, const char* setting = "STARLING_ENCRYPTION=on");
    virtual ~Cipher() = default;

    /// Whether it can do AES. Can be denied, for tests.
    bool has_aes = false;
    virtual ReadyKey prepare(Suite suite, const SealKey& key) const = 0;

    /// Encrypts in place, and writes the tag by which open() knows that neither `clear`, which stays readable, nor the text was
    /// changed. A number must never be used twice with one key.
    virtual void seal(const ReadyKey& key, uint64_t number, Bytes clear, std::span<std::byte> text, std::byte* tag) const = 0;
    /// False, and the text is lost, if it is not what was sealed with this key and number.
    virtual bool open(const ReadyKey& key, uint64_t number, Bytes clear, std::span<std::byte> text,
                      const std::byte* tag) const = 0;
    /// A key made of another one of 32 or 64 bytes: of equal ones for equal texts only, and it tells nothing of its parent. `purpose`, up
    /// to its end, sets apart what is made for different uses.
    virtual SealKey derive(Bytes key, const char* purpose, std::span<const Bytes> texts) const = 0;
    /// In a time that does not tell where they differ.
    virtual bool equal(const void* a, const void* b, size_t bytes) const = 0;
};

}  // namespace starling::network
