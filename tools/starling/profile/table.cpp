#include "table.h"

#include <algorithm>

namespace starling::analysis {

namespace {

/// Counts the characters of a UTF-8 text: the bytes that do not continue a character.
size_t width(std::string_view text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string cut(std::string_view text, size_t most) {
    if (text.size() <= most) return std::string(text);
    size_t end = most > 0 ? most - 1 : 0;
    while (end > 0 && (text[end] & 0xc0) == 0x80) --end;
    return std::string(text.substr(0, end)) + "…";
}

std::string Table::text() const {
    std::vector<size_t> widths(alignment_.size(), 0);
    for (const auto& row : rows_)
        for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
    std::string out;
    for (const auto& row : rows_) {
        std::string line = "  ";
        for (size_t i = 0; i < row.size(); ++i) {
            const std::string blank(widths[i] - width(row[i]), ' ');
            line += alignment_[i] == 'l' ? row[i] + blank : blank + row[i];
            line += "  ";
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + "\n";
    }
    return out;
}

std::string without_controls(std::string text) {
    bool after_c2 = false;  // U+0080 to U+009F are control characters too: C2 and one byte
    for (char& one : text) {
        const auto code = static_cast<unsigned char>(one);
        if ((code < 0x20 && one != '\n') || code == 0x7f || (after_c2 && code >= 0x80 && code < 0xa0)) one = '?';
        after_c2 = code == 0xc2;
    }
    return text;
}

}  // namespace starling::analysis
