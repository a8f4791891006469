#include "bootstrap/pmi_wire.h"

#include <charconv>
#include <cstdio>

namespace starling::bootstrap::pmi {

namespace {

constexpr size_t kLengthDigits = 6;

// Splits "name=value"; returns false if there is no name.
bool split(std::string_view text, std::string& name, std::string& value) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string_view::npos) return false;
    name = text.substr(0, equals);
    value = text.substr(equals + 1);
    return true;
}

// Parses attributes separated by blanks. The last one, `value` or `msg`, may be followed by words that belong to no attribute: some
// managers write sentences.
bool parse_line(std::string_view line, PmiMessage& out) {
    out = {};
    while (!line.empty()) {
        if (line.front() == ' ') {
            line.remove_prefix(1);
            continue;
        }
        const std::string_view word = line.substr(0, line.find(' '));
        line.remove_prefix(word.size());
        std::string name, value;
        if (split(word, name, value)) {
            out.set(name, value);
        } else if (out.attributes().empty()) {
            return false;
        }
    }
    return !out.command().empty();
}

// Parses attributes that each end in a semicolon; a semicolon in a value is written twice.
bool parse_body(std::string_view body, PmiMessage& out) {
    out = {};
    std::string text, name, value;
    for (size_t i = 0; i < body.size(); ++i) {
        if (body[i] != ';') {
            text.push_back(body[i]);
        } else if (i + 1 < body.size() && body[i + 1] == ';') {
            text.push_back(body[i++]);
        } else {
            if (!split(text, name, value)) return false;
            out.set(name, value);
            text.clear();
        }
    }
    // The last semicolon may be missing.
    if (!text.empty()) {
        if (!split(text, name, value)) return false;
        out.set(name, value);
    }
    return !out.command().empty();
}

}  // namespace

PmiMessage& PmiMessage::set(std::string_view name, std::string_view value) {
    attributes_.emplace_back(name, value);
    return *this;
}

bool PmiMessage::has(std::string_view name) const {
    for (const auto& attribute : attributes_)
        if (attribute.first == name) return true;
    return false;
}

std::string_view PmiMessage::get(std::string_view name) const {
    for (const auto& attribute : attributes_)
        if (attribute.first == name) return attribute.second;
    return {};
}

bool PmiMessage::number(std::string_view name, int& out) const {
    const std::string_view text = get(name);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::string encode(PmiVersion version, const PmiMessage& message) {
    std::string text;
    for (const auto& [name, value] : message.attributes()) {
        if (version == PmiVersion::one) {
            if (value.find_first_of(" \n") != std::string::npos) return {};
            if (!text.empty()) text.push_back(' ');
            text += name + "=" + value;
        } else {
            text += name + "=";
            for (const char c : value) text.append(c == ';' ? 2 : 1, c);
            text.push_back(';');
        }
    }
    if (version == PmiVersion::one) return text + "\n";
    if (text.size() > kMostBody) return {};
    char length[kLengthDigits + 1];
    std::snprintf(length, sizeof length, "%-6u", static_cast<unsigned>(text.size()));
    return length + text;
}

void Decoder::feed(std::string_view bytes) {
    if (begin_ > 0) {
        buffer_.erase(0, begin_);
        begin_ = 0;
    }
    if (!garbage_) buffer_.append(bytes);
}

Decoder::PmiReadResult Decoder::refuse() {
    garbage_ = true;
    buffer_.clear();
    begin_ = 0;
    return PmiReadResult::garbage;
}

Decoder::PmiReadResult Decoder::next(PmiMessage& out) {
    if (garbage_) return PmiReadResult::garbage;
    return version_ == PmiVersion::one ? next_line(out) : next_body(out);
}

Decoder::PmiReadResult Decoder::next_line(PmiMessage& out) {
    const std::string_view rest = std::string_view(buffer_).substr(begin_);
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return rest.size() > kMostLine ? refuse() : PmiReadResult::need_more;
    begin_ += end + 1;
    return parse_line(rest.substr(0, end), out) ? PmiReadResult::message : refuse();
}

Decoder::PmiReadResult Decoder::next_body(PmiMessage& out) {
    const std::string_view rest = std::string_view(buffer_).substr(begin_);
    if (rest.size() < kLengthDigits) return PmiReadResult::need_more;
    // Digits, then blanks; some managers write the blanks first.
    size_t length = 0, digits = 0;
    for (const char c : rest.substr(0, kLengthDigits)) {
        if (c == ' ') continue;
        if (c < '0' || c > '9') return refuse();
        length = length * 10 + static_cast<size_t>(c - '0');
        ++digits;
    }
    if (digits == 0) return refuse();
    if (rest.size() - kLengthDigits < length) return PmiReadResult::need_more;
    const std::string_view body = rest.substr(kLengthDigits, length);
    begin_ += kLengthDigits + length;
    return parse_body(body, out) ? PmiReadResult::message : refuse();
}

}  // namespace starling::bootstrap::pmi
