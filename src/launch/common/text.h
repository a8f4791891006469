// Parses pieces of text that users write: options, lists, hostfiles, rank files.
#pragma once

#include <charconv>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace starling::launch {

inline constexpr std::string_view kBlank = " \t\r\n";

/// Reads the whole text as a number. Returns false if it is not a number, or too large.
template <class Number>
bool read_number(std::string_view text, Number& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size();
}

/// Removes the next word from the front of `text` and returns it without surrounding blanks; empty at the end.
std::string_view parse_word(std::string_view& text);

/// Returns the words of a text that blanks separate.
std::vector<std::string> words_of(std::string_view text);

/// Returns "1 host" or "3 hosts", "1 process" or "3 processes".
std::string number_of(uint64_t count, std::string_view noun);

/// Returns the text with ASCII letters in lower case.
std::string lowercase(std::string_view text);

/// Quotes a user's text for an error message. Shortens long text, and replaces control characters, which a terminal would obey.
std::string printable(std::string_view text);

/// Returns a word as a shell needs it: in quotes if it has a character with a meaning to shells.
std::string shell_word(std::string_view word);

/// Returns the last component of `path`.
inline std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Returns how many edits turn `a` into `b`: characters changed, added or removed, or two neighbors swapped.
size_t edit_distance(std::string_view a, std::string_view b);

/// Passes each line of a file, without its end, to `take`, until `take` returns a description of an error. Returns an empty string, or the
/// error with file and line. `what` is the user's term for such a file.
std::string read_lines(const std::string& what, const std::string& path,
                       const std::function<std::string(std::string_view)>& take);

}  // namespace starling::launch
