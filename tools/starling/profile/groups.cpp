#include "groups.h"

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
        groups.push_back({span.name, span.from, span.to, std::move(pairs), {i}});
    }
    return groups;
}

}  // namespace starling::analysis
