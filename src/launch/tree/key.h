// The secret key that all daemons of one universe share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace starling::launch {

/// 256 random bits. Must never appear in an argument list, an environment or a message.
struct TreeKey {
    std::array<uint8_t, 32> bytes{};

    std::string_view view() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

/// The credentials with which a daemon authenticates itself.
struct TreeCredentials {
    TreeKey key;
    bool munge = false;    ///< true: both ends of a connection must also authenticate by MUNGE
    bool encrypt = false;  ///< true: frames are encrypted; both ends must agree

    TreeCredentials(const TreeKey& k, bool with_munge = false, bool encrypted = false)
        : key(k), munge(with_munge), encrypt(encrypted) {}
};

/// Returns a new key from the kernel's random number generator.
TreeKey make_key();

}  // namespace starling::launch
