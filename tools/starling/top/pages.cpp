#include "starling/top/pages.h"

namespace starling::top {

namespace {

struct KeyBytes {
    std::string_view bytes;
    TopKey key;
};

/// Longer sequences come before their beginnings.
constexpr KeyBytes kKeys[] = {{"\033[A", TopKey::up},    {"\033[B", TopKey::down},     {"\033OA", TopKey::up},
                              {"\033OB", TopKey::down},  {"\033[5~", TopKey::page_up}, {"\033[6~", TopKey::page_down},
                              {"\033[H", TopKey::first}, {"\033[1~", TopKey::first},   {"\033[F", TopKey::last},
                              {"\033[4~", TopKey::last}, {"\033", TopKey::back},       {"q", TopKey::quit},
                              {"?", TopKey::help},       {"h", TopKey::help},          {"w", TopKey::why},
                              {"\n", TopKey::why},       {"s", TopKey::sort},          {"t", TopKey::totals},
                              {"k", TopKey::up},         {"j", TopKey::down},          {"b", TopKey::page_up},
                              {" ", TopKey::page_down},  {"g", TopKey::first},         {"G", TopKey::last}};

}  // namespace

TopKey take_key(std::string_view& bytes) {
    for (const KeyBytes& entry : kKeys) {
        if (!bytes.starts_with(entry.bytes)) continue;
        bytes.remove_prefix(entry.bytes.size());
        return entry.key;
    }
    bytes.remove_prefix(bytes.empty() ? 0 : 1);
    return TopKey::none;
}

std::vector<std::string> help_lines() {
    return {"Keys",
            "",
            "  j k, arrows             select a rank",
            "  space b, PgDn PgUp      one page down or up",
            "  g G, Home End           first or last rank",
            "  w, Enter                why the selected rank waits, as `starling why` says it",
            "  s                       next order: rank, waiting, messages, bytes, cpu, memory",
            "  t                       totals since the start, or rates per second",
            "  q                       quit",
            "",
            "Columns",
            "",
            "  state   computing: outside MPI; in MPI: waits and spins; asleep: waits without processor time",
            "  wait%   share of the time in waits, sleep included",
            "  cpu%    processor time of all threads, of one core",
            "  mem     resident memory",
            "  call    the MPI function of a wait that has lasted for more than 20 ms",
            "  phase   the phase that the program has marked (MPI_Pcontrol, MPIX_Phase_begin) or that was detected",
            "  conns   connections to other processes",
            "  msg, B  messages and bytes per path"};
}

std::vector<std::string> wrapped(const std::vector<std::string>& lines, size_t width) {
    constexpr std::string_view kIndent = "      ";
    std::vector<std::string> all;
    for (std::string line : lines) {
        while (width > 2 * kIndent.size() && line.size() > width) {
            size_t cut = line.rfind(' ', width);
            if (cut == std::string::npos || cut <= kIndent.size()) cut = width;
            all.push_back(line.substr(0, cut));
            line.erase(0, line[cut] == ' ' ? cut + 1 : cut);
            line.insert(0, kIndent);
        }
        all.push_back(line);
    }
    return all;
}

}  // namespace starling::top
