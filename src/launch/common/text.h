// Pieces of what users write: options, lists, hostfiles, rank files.
#pragma once

#include <charconv>
#include <functional>
#include <string>
#include <string_view>

namespace starling::launch {

inline constexpr std::string_view kBlank = " \t\r\n";

/// The whole text as a number; false if it is none, or too great.
template <class Number>
bool read_number(std::string_view text, Number& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size();
}

/// Takes the next word off the front, without what stands around it; empty at the end.
std::string_view take_word(std::string_view& text);

/// What a user wrote, in quotes, to be shown in a complaint about it: the begin of what is long, and nothing that a terminal would obey.
std::string shown(std::string_view text);

/// The last part of a path.
inline std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// How many letters have to be changed, added or left out to make the one of the other.
size_t edit_distance(std::string_view a, std::string_view b);

/// Gives each line of a file to `take`, without its end, until that returns what is wrong with it. An empty string, or the sentence
/// that tells what is wrong, with the file and the line. `what` is what the user calls such a file.
std::string read_lines(const std::string& what, const std::string& path,
                       const std::function<std::string(std::string_view)>& take);

}  // namespace starling::launch
