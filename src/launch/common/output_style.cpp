#include "launch/common/output_style.h"

#include <algorithm>
#include <cstdio>

namespace starling::launch {

namespace {

constexpr std::string_view kSpecifiers = "rRhpgj%";

// Calls `part(text, specifier)` for each piece of literal text and the specifier after it, 0 at the end.
template <typename Part>
void for_each_part(std::string_view pattern, Part part) {
    while (true) {
        const size_t percent = pattern.find('%');
        if (percent == std::string_view::npos) return part(pattern, '\0');
        const char specifier = percent + 1 < pattern.size() ? pattern[percent + 1] : ' ';
        part(pattern.substr(0, percent), specifier);
        pattern.remove_prefix(std::min(percent + 2, pattern.size()));
    }
}

std::string with_zeros(uint32_t rank, uint32_t size) {
    const size_t width = std::to_string(size > 0 ? size - 1 : 0).size();
    std::string text = std::to_string(rank);
    if (text.size() < width) text.insert(0, width - text.size(), '0');
    return text;
}

std::string value_of(char specifier, const PatternValues& values) {
    switch (specifier) {
        case 'r':
            return std::to_string(values.rank);
        case 'R':
            return with_zeros(values.rank, values.size);
        case 'h':
            return values.host_name;
        case 'p':
            return std::to_string(values.host);
        case 'g':
            return std::to_string(values.job);
        case 'j':
            return std::to_string(values.job + 1);
        default:
            return specifier == '%' ? "%" : "";
    }
}

}  // namespace

std::string check_pattern(std::string_view pattern) {
    std::string problem;
    for_each_part(pattern, [&](std::string_view, char specifier) {
        if (specifier == '\0' || !problem.empty() || kSpecifiers.find(specifier) != std::string_view::npos) return;
        problem =
            "'%" + std::string(1, specifier) +
            "' is not valid in a pattern; use %r (rank), %R (rank with leading zeros), %h (host), %p (number of the host), "
            "%g (job, from 0), %j (job, from 1) or %%";
    });
    return problem;
}

std::string expand_pattern(std::string_view pattern, const PatternValues& values) {
    std::string out;
    for_each_part(pattern,
                  [&](std::string_view text, char specifier) { out.append(text).append(value_of(specifier, values)); });
    return out;
}

bool is_shared(std::string_view pattern) {
    bool shared = true;
    for_each_part(pattern, [&](std::string_view, char specifier) { shared &= specifier == '\0' || specifier == '%'; });
    return shared;
}

std::string as_pattern(std::string_view text) {
    std::string out;
    for (const char c : text) out.append(c == '%' ? 2 : 1, c);
    return out;
}

void write_unless_default(Writer& writer, const OutputStyle& style) {
    if (style == OutputStyle{}) return;
    writer.number(static_cast<uint32_t>(style.timestamp | style.merged << 1 | style.only_files << 2));
    writer.string(style.prefix).string(style.output_file).string(style.error_file);
}

void read_style(Reader& reader, OutputStyle& out) {
    const auto flags = reader.number<uint32_t>();
    out.timestamp = (flags & 1) != 0;
    out.merged = (flags & 2) != 0;
    out.only_files = (flags & 4) != 0;
    for (std::string* pattern : {&out.prefix, &out.output_file, &out.error_file}) {
        *pattern = reader.string();
        if (!check_pattern(*pattern).empty()) pattern->clear();
    }
}

}  // namespace starling::launch
