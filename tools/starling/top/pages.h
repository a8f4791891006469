// Keys of `starling top`, and the pages that replace the list of ranks for a while.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace starling::top {

enum class TopKey : uint8_t { none, quit, help, why, sort, totals, up, down, page_up, page_down, first, last, back };

/// Takes one key from the front of the bytes that a terminal sent. Bytes that are no known key are TopKey::none.
TopKey take_key(std::string_view& bytes);

/// Returns the lines of the page of help.
std::vector<std::string> help_lines();

/// Breaks lines at spaces so that none is longer than `width` columns; the rest of a line is indented.
std::vector<std::string> wrapped(const std::vector<std::string>& lines, size_t width);

}  // namespace starling::top
