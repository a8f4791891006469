// The secret that all daemons of one universe share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace starling::launch {

/// 256 random bits. Never in an argument list, an environment or a message.
struct TreeKey {
    std::array<uint8_t, 32> bytes{};

    std::string_view view() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

/// What a daemon proves itself with.
struct TreeCredentials {
    TreeKey key;
    bool munge = false;    ///< MUNGE has to vouch for both ends besides
    bool encrypt = false;  ///< what daemons say is secret too; both ends have to want it

    TreeCredentials(const TreeKey& k, bool with_munge = false, bool encrypted = false)
        : key(k), munge(with_munge), encrypt(encrypted) {}
};

/// From the kernel's generator.
TreeKey make_key();

}  // namespace starling::launch
