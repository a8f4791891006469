#include <algorithm>

#include "hang/judge.h"
#include "hang/text.h"

namespace starling::hang {

namespace {

constexpr size_t kMostRuns = 8;

/// Returns sorted ranks as the parts "3", "5 to 9" and "12".
std::vector<std::string> runs_of(const std::vector<uint32_t>& ranks) {
    std::vector<std::string> parts;
    for (size_t i = 0; i < ranks.size();) {
        size_t end = i + 1;
        while (end < ranks.size() && ranks[end] - ranks[i] == end - i) ++end;
        if (end - i < 3) end = i + 1;  // two neighbors are shorter as two numbers
        parts.push_back(end - i == 1 ? text("%u", ranks[i]) : text("%u to %u", ranks[i], ranks[end - 1]));
        i = end;
    }
    return parts;
}

void shorten(std::vector<std::string>& parts) {
    if (parts.size() <= kMostRuns + 1) return;
    const size_t more = parts.size() - kMostRuns;
    parts.resize(kMostRuns);
    parts.push_back(text("%zu more", more));
}

}  // namespace

std::string name_of(const ProcessName& process, uint64_t home) {
    if (process.job == home) return text("rank %u", process.rank);
    return text("rank %u of job %016llx", process.rank, static_cast<unsigned long long>(process.job));
}

std::string names_of(std::vector<ProcessName> processes, uint64_t home) {
    std::sort(processes.begin(), processes.end());
    processes.erase(std::unique(processes.begin(), processes.end()), processes.end());
    std::vector<uint32_t> ranks;
    std::vector<std::string> names;
    for (const ProcessName& process : processes) {
        if (process.job == home) ranks.push_back(process.rank);
        if (process.job != home || processes.size() <= 2) names.push_back(name_of(process, home));
    }
    shorten(names);
    if (processes.size() <= 2 || ranks.empty()) return listed(names);
    std::vector<std::string> runs = runs_of(ranks);
    shorten(runs);
    if (names.empty() || ranks.size() == 1) {
        names.insert(names.begin(), (ranks.size() == 1 ? "rank " : "ranks ") + listed(runs));
        return listed(names);
    }
    return "ranks " + listed(runs) + ", and " + listed(names);
}

}  // namespace starling::hang
