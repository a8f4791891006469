#include "algorithms.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace starling::analysis {

namespace {

constexpr double kEnough = 8;  ///< minimum number of calls on a communicator before an algorithm is compared
constexpr double kSigmas = 3;  ///< minimum difference in standard errors, because among six algorithms chance favors one
constexpr double kLeastSaving = 0.05;  ///< minimum share of the call's time that must be saved

/// The calls with one algorithm. The times of a call's members are not independent samples, since members wait for each other.
struct Times {
    double calls = 0, seconds = 0, squares = 0;  ///< sums over processes of calls, seconds, and squares of seconds
    double of_communicator = 0;
    void add(const Calls& more, double members, double runs) {
        calls += more.calls;
        seconds += more.seconds;
        squares += more.squares;
        of_communicator += more.calls * runs / members;
    }
    double mean() const { return seconds / calls; }
    /// Returns the square of the standard error of the mean time.
    double error() const { return std::max(0.0, squares / calls - mean() * mean()) / of_communicator; }
};

struct Place {
    Times usual;                       ///< times of calls with the selection table's algorithm
    std::map<std::string, Times> all;  ///< times of the calls with each algorithm
    std::vector<std::string> instead_of;
};

}  // namespace

std::vector<PlannedCollective> choose_algorithms(const Run& run) {
    std::map<std::tuple<std::string, std::string, uint32_t>, Place> places;
    const auto runs = static_cast<double>(run.files.size());
    for (const auto& [site, calls] : run.collectives) {
        // Skip nonblocking operations, whose time is unknown. With one member, or without an algorithm, there is no choice.
        if (site.kind.starts_with("i") || site.algorithm == "none" || site.members < 2) continue;
        Place& place = places[{site.kind, site.size, site.members}];
        place.all[site.algorithm].add(calls, site.members, runs);
        if (site.tried) continue;
        place.usual.add(calls, site.members, runs);
        if (std::find(place.instead_of.begin(), place.instead_of.end(), site.algorithm) == place.instead_of.end())
            place.instead_of.push_back(site.algorithm);
    }
    std::vector<std::pair<double, PlannedCollective>> found;
    for (auto& [of, place] : places) {
        std::erase_if(place.all, [](const auto& each) { return each.second.of_communicator < kEnough; });
        if (place.usual.of_communicator < kEnough) continue;
        const auto shorter = [](const auto& a, const auto& b) { return a.second.mean() < b.second.mean(); };
        const auto best = std::min_element(place.all.begin(), place.all.end(), shorter);
        if (best == place.all.end()) continue;
        const double before = place.usual.mean(), after = best->second.mean();
        if (before - after < kLeastSaving * before) continue;
        if (before - after < kSigmas * std::sqrt(place.usual.error() + best->second.error())) continue;
        std::string usual;
        for (const std::string& name : place.instead_of) usual += (usual.empty() ? "" : ", ") + name;
        const auto& [kind, size, processes] = of;
        double calls = 0;
        for (const auto& [name, times] : place.all) calls += times.calls;
        found.push_back({calls * (before - after), {kind, size, processes, best->first, usual, before, after}});
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<PlannedCollective> out;
    for (auto& [saved, planned] : found) out.push_back(std::move(planned));
    return out;
}

}  // namespace starling::analysis
