#include "launch/client/dry_run.h"

#include <cstdio>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "launch/common/processor_placement.h"
#include "launch/common/text.h"

namespace starling::launch {

namespace {

constexpr int kCannotPlace = 127;

std::string ranks_text(const std::vector<uint32_t>& ranks) {
    return (ranks.size() > 1 ? "ranks " : "rank ") + cpus_text(ranks);
}

}  // namespace

int print_preview(const PlacementPreview& preview) {
    if (!preview.problem.empty()) {
        std::fprintf(stderr, "mpiexec: %s\n", preview.problem.c_str());
        return kCannotPlace;
    }
    std::vector<std::pair<std::string, std::vector<uint32_t>>> hosts;
    std::unordered_map<std::string_view, size_t> known;
    for (uint32_t rank = 0; rank < preview.host_of_rank.size(); ++rank) {
        const std::string& name = preview.host_of_rank[rank];
        const auto [at, fresh] = known.try_emplace(name, hosts.size());
        if (fresh) hosts.push_back({name, {}});
        hosts[at->second].second.push_back(rank);
    }
    for (const auto& [name, ranks] : hosts) std::printf("host %s would have %s\n", name.c_str(), ranks_text(ranks).c_str());
    uint32_t first = 0;
    for (const Program& program : preview.programs) {
        std::vector<uint32_t> ranks;
        for (uint32_t i = 0; i < program.count; ++i) ranks.push_back(first + i);
        first += program.count;
        if (ranks.empty()) continue;
        std::string command;
        for (const std::string& word : program.argv) command += " " + shell_word(word);
        const std::string where = program.directory.empty() ? "" : " (in " + program.directory + ")";
        std::printf("%s:%s%s\n", ranks_text(ranks).c_str(), command.c_str(), where.c_str());
    }
    for (const std::string& host : preview.assumed)
        std::fprintf(stderr, "mpiexec: host %s is not asked for its cores; as many as here are assumed (%s:N names a number)\n",
                     host.c_str(), host.c_str());
    return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace starling::launch
