// Bytes as text.
#pragma once

#include <cstddef>
#include <string>

namespace starling {

/// Returns two lower-case hexadecimal digits for each byte.
inline std::string hexadecimal(const unsigned char* bytes, size_t count) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (size_t i = 0; i < count; ++i) {
        text += kDigits[bytes[i] >> 4];
        text += kDigits[bytes[i] & 15];
    }
    return text;
}

}  // namespace starling
