#include "core_pairs.h"

#include <algorithm>
#include <array>
#include <utility>

#include "launch/process/binding.h"

namespace starling {

namespace {

using launch::HardwareThread;
using launch::ProcessorPart;

constexpr std::array<std::pair<ProcessorPart, const char*>, 7> kNeighborhoods{{{ProcessorPart::core, "one core"},
                                                                               {ProcessorPart::l1cache, "one L1 cache"},
                                                                               {ProcessorPart::l2cache, "one L2 cache"},
                                                                               {ProcessorPart::l3cache, "one L3 cache"},
                                                                               {ProcessorPart::numa, "one NUMA node"},
                                                                               {ProcessorPart::package, "one package"},
                                                                               {ProcessorPart::machine, "one machine"}}};

/// Returns the index of the smallest part that contains both.
size_t neighborhood_of(const HardwareThread& a, const HardwareThread& b) {
    size_t i = 0;
    while (i + 1 < kNeighborhoods.size() && a.in(kNeighborhoods[i].first) != b.in(kNeighborhoods[i].first)) ++i;
    return i;
}

}  // namespace

std::vector<CorePair> core_pairs(std::string& problem) {
    launch::ProcessorMap map;
    if (!launch::load_processors(map).empty()) {
        problem =
            "hwloc does not find the cores that this process may use; install libhwloc15, or check the limits of taskset or "
            "the container";
        return {};
    }
    const std::vector<HardwareThread>& threads = map.threads();
    std::array<std::pair<size_t, size_t>, kNeighborhoods.size()> first{};
    for (size_t a = 0; a < threads.size(); ++a)
        for (size_t b = a + 1; b < threads.size(); ++b)
            if (auto& found = first[neighborhood_of(threads[a], threads[b])]; found.second == 0) found = {a, b};
    std::vector<CorePair> pairs;
    for (size_t i = 0; i < first.size(); ++i)
        if (const auto [a, b] = first[i]; b != 0) pairs.push_back({{threads[a].cpu, threads[b].cpu}, kNeighborhoods[i].second});
    if (pairs.empty())
        problem = "this process may use one core only, and copies between two cores need two; check taskset or the container";
    return pairs;
}

}  // namespace starling
