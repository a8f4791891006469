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

}  // namespace starling::analysis
