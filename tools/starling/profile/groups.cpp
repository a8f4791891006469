#include "groups.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plan/future_value.h"

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

// Computes the worth of connections from the run's end backwards. Occurrences that the file reports as one span are treated as equal, since
// only their sum is known.
void add_worth(const Run& run, std::vector<Group>& groups) {
    constexpr double kSettled = 32;  ///< number of occurrences after which one more changes nothing
    std::map<size_t, Group*> beginning;
    for (Group& group : groups) beginning[group.spans.front()] = &group;
    std::vector<Pair> worth;
    for (size_t i = run.spans.size(); i-- > 0;) {
        const Span& span = run.spans[i];
        const std::vector<Pair> now = pairs_of(span);
        for (double n = std::min(span.occurrences(), kSettled); n > 0; --n) {
            for (Pair& pair : worth) pair.all.messages = plan::worth_later(pair.all.messages);
            std::erase_if(worth, [](const Pair& pair) { return pair.all.messages < 1; });
            worth = sum_of(worth, now, 1 / span.occurrences());
        }
        if (const auto group = beginning.find(i); group != beginning.end()) group->second->worth = worth;
    }
}

}  // namespace starling::analysis
