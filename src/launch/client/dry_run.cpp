#include "launch/client/dry_run.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "launch/common/processor_placement.h"
#include "launch/common/text.h"

namespace starling::launch {

namespace {

constexpr int kCannotPlace = 127;

std::string ranks_text(const std::vector<uint32_t>& ranks) {
    return (ranks.size() > 1 ? "ranks " : "rank ") + cpus_text(ranks);
}

}  // namespace

int print_preview(const PlacementPreview& preview, const std::vector<Program>& programs) {
    if (!preview.problem.empty()) {
        std::fprintf(stderr, "mpiexec: %s\n", preview.problem.c_str());
        return kCannotPlace;
    }
    std::vector<std::vector<uint32_t>> ranks_on(preview.hosts.size());
    for (uint32_t rank = 0; rank < preview.host_of_rank.size(); ++rank) ranks_on[preview.host_of_rank[rank]].push_back(rank);
    for (size_t host = 0; host < preview.hosts.size(); ++host)
        std::printf("host %s would have %s\n", preview.hosts[host].c_str(), ranks_text(ranks_on[host]).c_str());
    uint32_t first = 0;
    for (size_t i = 0; i < programs.size() && i < preview.counts.size(); ++i) {
        const Program& program = programs[i];
        std::vector<uint32_t> ranks;
        for (uint32_t j = 0; j < preview.counts[i]; ++j) ranks.push_back(first + j);
        first += preview.counts[i];
        if (ranks.empty()) continue;
        std::string command;
        for (const std::string& word : program.argv) command += " " + shell_word(word);
        const std::string where = program.directory.empty() ? "" : " (in " + program.directory + ")";
        std::printf("%s:%s%s\n", ranks_text(ranks).c_str(), command.c_str(), where.c_str());
    }
    for (const std::string& host : preview.assumed)
        std::fprintf(stderr, "mpiexec: host %s is not asked for its cores; as many as here are assumed (%s:N names a number)\n",
                     host.c_str(), host.c_str());
    if (std::fflush(stdout) == 0) return 0;
    std::fprintf(stderr, "mpiexec: the placement can't be written to standard output: %s\n", std::strerror(errno));
    return 1;
}

}  // namespace starling::launch
