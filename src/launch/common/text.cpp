#include "launch/common/text.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace starling::launch {

std::string_view parse_word(std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
    const std::string_view word = text.substr(0, text.find_first_of(kBlank));
    text.remove_prefix(word.size());
    return word;
}

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    for (std::string_view word = parse_word(text); !word.empty(); word = parse_word(text)) words.emplace_back(word);
    return words;
}

namespace {

constexpr size_t kLongestTextLine = 1 << 20;  ///< bytes; a longer line is no text, and might never end

/// Reads the next line, without its end, or the first kLongestTextLine + 1 bytes of a longer one. Returns false at the end of the file.
bool read_bounded_line(FILE* file, std::string& line) {
    line.clear();
    int c = getc_unlocked(file);
    const bool any = c != EOF;
    for (; c != EOF && c != '\n' && line.size() <= kLongestTextLine; c = getc_unlocked(file)) line += static_cast<char>(c);
    return any;
}

}  // namespace

std::string read_lines(const std::string& what, const std::string& path,
                       const std::function<std::string(std::string_view)>& take) {
    FILE* file = std::fopen(path.c_str(), "re");
    if (!file) return "cannot read the " + what + " '" + path + "': " + std::strerror(errno);
    std::string problem, line;
    int number = 0;
    errno = 0;
    while (problem.empty() && read_bounded_line(file, line)) {
        ++number;
        problem = line.size() <= kLongestTextLine
                      ? take(line)
                      : "it has more than " + number_of(kLongestTextLine, "character") + "; name a text file";
        if (!problem.empty()) problem = what + " '" + path + "', line " + std::to_string(number) + ": " + problem;
    }
    if (problem.empty() && std::ferror(file)) problem = "cannot read the " + what + " '" + path + "': " + std::strerror(errno);
    std::fclose(file);
    return problem;
}

std::string number_of(uint64_t count, std::string_view noun) {
    return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : noun.ends_with('s') ? "es" : "s");
}

std::string lowercase(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
}

std::string printable(std::string_view text) {
    constexpr size_t kMost = 80;
    std::string out = "'" + std::string(text.substr(0, kMost));
    for (char& c : out)
        if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '?';
    return out + (text.size() > kMost ? "'..." : "'");
}

std::string shell_word(std::string_view word) {
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
    std::string quoted = "'";
    for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

size_t edit_distance(std::string_view a, std::string_view b) {
    // The optimal string alignment distance. Rows for the first i - 1, i and i + 1 characters of `a`.
    std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 0; i < a.size(); ++i) {
        before.swap(above);
        above.swap(row);
        row[0] = i + 1;
        for (size_t j = 0; j < b.size(); ++j) {
            row[j + 1] = std::min({above[j] + (a[i] != b[j]), row[j] + 1, above[j + 1] + 1});
            if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
        }
    }
    return row[b.size()];
}

}  // namespace starling::launch
