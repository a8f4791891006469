// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104). Of our own: the daemons need these two and nothing else, and a
// cryptographic library costs each start of mpiexec more than all its other work.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace starling {

using Sha256Digest = std::array<uint8_t, 32>;

/// A hash in the making: any number of update(), then finish() once.
class Sha256 {
  public:
    Sha256();
    void update(std::string_view bytes);
    Sha256Digest finish();

  private:
    uint32_t state_[8];
    uint64_t length_ = 0;
    uint8_t block_[64];
    size_t filled_ = 0;
};

/// A keyed hash. Copies share the work that the key costs: keep one per key, copy it per message.
class HmacSha256 {
  public:
    explicit HmacSha256(std::string_view key);
    void update(std::string_view bytes) { inner_.update(bytes); }
    Sha256Digest finish();

  private:
    Sha256 inner_, outer_;
};

Sha256Digest hmac_sha256(std::string_view key, std::string_view message);

/// Compares in a time that does not depend on where they differ. False if the lengths do.
bool equal_secret(std::string_view a, std::string_view b);

inline std::string_view bytes_of(const Sha256Digest& digest) {
    return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace starling
