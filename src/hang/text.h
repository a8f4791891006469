// Helpers that compose sentences.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>
#include <vector>

namespace starling::hang {

/// Returns a formatted string, as printf prints it.
[[gnu::format(printf, 1, 2)]] inline std::string text(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char buffer[512];
    std::vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    return buffer;
}

/// Returns the parts as "a, b and c".
inline std::string listed(const std::vector<std::string>& parts, const char* last = " and ") {
    std::string all;
    for (size_t i = 0; i < parts.size(); ++i) all += (i == 0 ? "" : i + 1 == parts.size() ? last : ", ") + parts[i];
    return all;
}

}  // namespace starling::hang
