#include "help_pages.h"

#include <zlib.h>

#include <cstdlib>
#include <cstring>

// The format of tools/manual/build.py: eight bytes with the length, then zlib data.
__asm__(".section .rodata\nstarling_help:\n.incbin \"" STARLING_HELP "\"\nstarling_help_end:\n.byte 0\n.previous\n");
extern "C" __attribute__((visibility("hidden"))) const char starling_help[], starling_help_end[];

namespace starling {

namespace {

constexpr char kPage = '\x1e', kPart = '\x1f';

std::string unpacked() {
    uint64_t length = 0;
    std::memcpy(&length, starling_help, sizeof length);
    std::string text(length, '\0');
    uLongf got = length;
    const auto* from = reinterpret_cast<const Bytef*>(starling_help + sizeof length);
    const auto size = static_cast<uLong>(starling_help_end - starling_help) - sizeof length;
    if (uncompress(reinterpret_cast<Bytef*>(text.data()), &got, from, size) != Z_OK) std::abort();
    return text;
}

/// Removes the text up to `end` from the front of `rest`, including `end`, and returns it without `end`.
std::string_view take(std::string_view& rest, char end) {
    const size_t at = rest.find(end);
    const std::string_view part = rest.substr(0, at);
    rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
    return part;
}

std::vector<HelpPage> read_pages() {
    static const std::string text = unpacked();
    std::vector<HelpPage> pages;
    for (std::string_view rest = text; !rest.empty();) {
        std::string_view page = take(rest, kPage);
        HelpPage& one = pages.emplace_back();
        one.topic = take(page, kPart) == "topic";
        for (std::string_view names = take(page, kPart); !names.empty();) one.names.push_back(take(names, ' '));
        one.title = take(page, kPart);
        one.text = page;
    }
    return pages;
}

}  // namespace

const std::vector<HelpPage>& help_pages() {
    static const std::vector<HelpPage> pages = read_pages();
    return pages;
}

}  // namespace starling
