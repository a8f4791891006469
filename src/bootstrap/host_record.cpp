#include "bootstrap/host_record.h"

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "base/version.h"

namespace starling::bootstrap {

namespace {

/// Returns the start of every record, which contains the wire's major version.
std::string start_of_record() { return "s" + std::to_string(kThisVersion.major) + ","; }

template <class Number>
bool parse_hex(std::string_view& text, Number& out) {
    const std::string_view field = text.substr(0, text.find(','));
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), out, 16);
    if (error != std::errc() || end != field.data() + field.size()) return false;
    text.remove_prefix(field.size());
    if (text.empty()) return false;  // another field must follow, since the last one is a name
    text.remove_prefix(1);
    return true;
}

bool may_be_in_a_name(char c) { return c > ' ' && c < 0x7f && c != ',' && c != ';' && c != '='; }

}  // namespace

// Version, port, id, key, number of addresses, the addresses, the name: separated by commas, numbers in hexadecimal.
std::string encode(const HostRecord& record) {
    char text[128];
    std::snprintf(text, sizeof text, "%x,%" PRIx64 ",%" PRIx64 ",%x,", record.port, record.host.id, record.host.key,
                  record.host.addresses);
    std::string line = start_of_record() + text;
    for (uint32_t i = 0; i < record.host.addresses; ++i) {
        std::snprintf(text, sizeof text, "%x,", record.host.ipv4[i]);
        line += text;
    }
    for (const char* c = record.host.name; c < record.host.name + sizeof record.host.name && *c; ++c)
        line.push_back(may_be_in_a_name(*c) ? *c : '_');
    return line;
}

bool decode(std::string_view text, HostRecord& out) {
    out = {};
    const std::string start = start_of_record();
    if (!text.starts_with(start)) return false;
    text.remove_prefix(start.size());
    if (!parse_hex(text, out.port) || out.port == 0) return false;
    if (!parse_hex(text, out.host.id) || !parse_hex(text, out.host.key) || !parse_hex(text, out.host.addresses)) return false;
    if (out.host.addresses == 0 || out.host.addresses > job::HostEntry::kMost) return false;
    for (uint32_t i = 0; i < out.host.addresses; ++i)
        if (!parse_hex(text, out.host.ipv4[i])) return false;
    if (text.size() >= sizeof out.host.name) return false;
    for (const char c : text)
        if (!may_be_in_a_name(c)) return false;
    text.copy(out.host.name, text.size());
    return true;
}

}  // namespace starling::bootstrap
