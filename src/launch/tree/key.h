// The secret that all daemons of one universe share, and what is proved with it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace starling::launch {

/// 256 random bits. Never in an argument list, an environment or a message.
struct TreeKey {
    std::array<uint8_t, 32> bytes{};
};

/// From the kernel's generator.
TreeKey make_key();

}  // namespace starling::launch
