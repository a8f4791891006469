#include "launch/client/rank_file.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "control/control_protocol.h"
#include "launch/common/hosts.h"
#include "launch/common/text.h"

namespace starling::launch {

namespace {

/// Returns whether the text is a slot: "1", "0:1", "0-3", "1,2".
bool is_slot(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789:,-*") == std::string_view::npos;
}

/// Reads rank and host from a line that is not empty. "rank 3 = host" may have blanks around '='.
bool read_line(std::string_view line, uint32_t& rank, std::string& host) {
    if (parse_word(line) != "rank") return false;
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) return false;
    std::string_view number = line.substr(0, equals);
    line.remove_prefix(equals + 1);
    if (!read_number(parse_word(number), rank) || !parse_word(number).empty()) return false;
    host = parse_word(line);
    if (!may_be_host(host.starts_with('+') ? host.substr(1) : host)) return false;
    const std::string_view slot = parse_word(line);
    constexpr std::string_view kSlot = "slot=";
    if (!slot.empty() && !(slot.starts_with(kSlot) && is_slot(slot.substr(kSlot.size())))) return false;
    return parse_word(line).empty();
}

std::string take_line(std::string_view line, std::vector<std::string>& out) {
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(kBlank) == std::string_view::npos) return {};
    uint32_t rank = 0;
    std::string host;
    if (!read_line(line, rank, host)) {
        line = line.substr(0, line.find_last_not_of(kBlank) + 1);
        return printable(line) + " is not of the form 'rank 3=host' or 'rank 3=host slot=1'";
    }
    if (rank >= control::kMaxProcesses) return "there is no rank " + std::to_string(rank) + ": a job has at most a million";
    if (rank >= out.size()) out.resize(rank + 1);
    if (!out[rank].empty()) return "rank " + std::to_string(rank) + " already has a host, " + out[rank];
    out[rank] = std::move(host);
    return {};
}

/// Finds the host's index in the program's hosts; adds the host if the program may run anywhere.
std::string find_host(const std::string& name, bool anywhere, Program& program, uint32_t& out) {
    std::vector<HostSlots>& hosts = program.hosts;
    if (name.starts_with("+n")) {
        if (anywhere) return "'" + name + "' is an index into the hosts of --host or --hostfile, but these name none";
        if (!read_number(std::string_view(name).substr(2), out) || out >= hosts.size())
            return "'" + name + "' is not one of the " + std::to_string(hosts.size()) + " hosts that are named, +n0 to +n" +
                   std::to_string(hosts.size() - 1);
        return {};
    }
    const auto known =
        std::find_if(hosts.begin(), hosts.end(), [&](const HostSlots& host) { return same_host(host.name, name); });
    out = static_cast<uint32_t>(known - hosts.begin());
    if (known != hosts.end()) return {};
    if (!anywhere) return "host " + name + " is not one of the hosts of --host or --hostfile";
    hosts.push_back({name, 0});
    return {};
}

}  // namespace

std::string read_rank_file(const std::string& path, std::vector<std::string>& out) {
    const std::string problem = read_lines("rank file", path, [&](std::string_view line) { return take_line(line, out); });
    if (!problem.empty()) return problem;
    if (out.empty()) return "the rank file '" + path + "' names no rank";
    const auto gap = std::find_if(out.begin(), out.end(), [](const std::string& host) { return host.empty(); });
    if (gap == out.end()) return {};
    return "the rank file '" + path + "' has no line for rank " + std::to_string(gap - out.begin()) +
           ", but lines for higher ranks";
}

std::string place_by(const std::string& path, const std::vector<std::string>& host_of_rank, std::vector<Program>& programs) {
    size_t rank = 0;
    for (Program& program : programs) {
        const bool anywhere = program.hosts.empty();
        std::unordered_map<std::string, uint32_t> numbers;
        for (uint32_t i = 0; i < program.count; ++i, ++rank) {
            if (rank >= host_of_rank.size())
                return "the rank file '" + path + "' has no line for rank " + std::to_string(rank) +
                       ", but the job has more processes";
            const auto [at, fresh] = numbers.try_emplace(host_of_rank[rank], 0);
            std::string problem = fresh ? find_host(host_of_rank[rank], anywhere, program, at->second) : std::string();
            if (!problem.empty()) return "the rank file '" + path + "' for rank " + std::to_string(rank) + ": " + problem;
            program.host_of_process.push_back(at->second);
        }
    }
    if (rank == host_of_rank.size()) return {};
    return "the rank file '" + path + "' is for " + std::to_string(host_of_rank.size()) + " ranks, and the job has " +
           std::to_string(rank) + "; -n sets their number";
}

}  // namespace starling::launch
