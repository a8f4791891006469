#include "groups.h"

#include <cmath>
#include <map>
#include <utility>

namespace starling::analysis {

std::vector<Group> groups_of(const Run& run) {
    std::vector<Group> groups;
    std::map<std::string, size_t> last;
    for (size_t i = 0; i < run.spans.size(); ++i) {
        const Span& span = run.spans[i];
        std::vector<Pair> pairs = pairs_of(span);
        const auto known = last.find(span.name);
        if (known != last.end()) {
            Group& before = groups[known->second];
            if (before.to + 1 == span.from && likeness(before.pairs, pairs) >= kAlike) {
                before.to = span.to;
                before.pairs = sum_of(before.pairs, pairs);
                before.spans.push_back(i);
                continue;
            }
        }
        last[span.name] = groups.size();
        groups.push_back({span.name, span.from, span.to, std::move(pairs), {}, {i}});
    }
    return groups;
}

// From the run's end backwards. A span of several occurrences tells their sum, so they are taken to be alike.
void add_worth(const Run& run, std::vector<Group>& groups) {
    std::map<size_t, Group*> beginning;
    for (Group& group : groups) beginning[group.spans.front()] = &group;
    std::vector<Pair> worth;
    for (size_t i = run.spans.size(); i-- > 0;) {
        const double each = 1 / run.spans[i].occurrences(), later = std::pow(kHorizon, run.spans[i].occurrences());
        worth = sum_of({}, worth, later);
        worth = sum_of(worth, pairs_of(run.spans[i]), each * (1 - later) / (1 - kHorizon));
        if (const auto group = beginning.find(i); group != beginning.end()) group->second->worth = worth;
    }
}

}  // namespace starling::analysis
