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
bool parse_line(std::string_view line, Message& out) {
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
bool parse_body(std::string_view body, Message& out) {
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

Message& Message::set(std::string_view name, std::string_view value) {
    attributes_.emplace_back(name, value);
    return *this;
}

bool Message::has(std::string_view name) const {
    for (const auto& attribute : attributes_)
        if (attribute.first == name) return true;
    return false;
}

std::string_view Message::get(std::string_view name) const {
    for (const auto& attribute : attributes_)
        if (attribute.first == name) return attribute.second;
    return {};
}

bool Message::number(std::string_view name, int& out) const {
    const std::string_view text = get(name);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::string encode(Version version, const Message& message) {
    std::string text;
    for (const auto& [name, value] : message.attributes()) {
        if (version == Version::one) {
            if (value.find_first_of(" \n") != std::string::npos) return {};
            if (!text.empty()) text.push_back(' ');
            text += name + "=" + value;
        } else {
            text += name + "=";
            for (const char c : value) text.append(c == ';' ? 2 : 1, c);
            text.push_back(';');
        }
    }
    if (version == Version::one) return text + "\n";
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

Decoder::Result Decoder::refuse() {
    garbage_ = true;
    buffer_.clear();
    begin_ = 0;
    return Result::garbage;
}

Decoder::Result Decoder::next(Message& out) {
    if (garbage_) return Result::garbage;
    return version_ == Version::one ? next_line(out) : next_body(out);
}

Decoder::Result Decoder::next_line(Message& out) {
    const std::string_view rest = std::string_view(buffer_).substr(begin_);
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return rest.size() > kMostLine ? refuse() : Result::need_more;
    begin_ += end + 1;
    return parse_line(rest.substr(0, end), out) ? Result::message : refuse();
}

Decoder::Result Decoder::next_body(Message& out) {
    const std::string_view rest = std::string_view(buffer_).substr(begin_);
    if (rest.size() < kLengthDigits) return Result::need_more;
    // Digits, then blanks; some managers write the blanks first.
    size_t length = 0, digits = 0;
    for (const char c : rest.substr(0, kLengthDigits)) {
        if (c == ' ') continue;
        if (c < '0' || c > '9') return refuse();
        length = length * 10 + static_cast<size_t>(c - '0');
        ++digits;
    }
    if (digits == 0) return refuse();
    if (rest.size() - kLengthDigits < length) return Result::need_more;
    const std::string_view body = rest.substr(kLengthDigits, length);
    begin_ += kLengthDigits + length;
    return parse_body(body, out) ? Result::message : refuse();
}

}  // namespace starling::bootstrap::pmi
