#include "pairs.h"

#include <algorithm>
#include <utility>

namespace starling::analysis {

namespace {

bool before(const Pair& one, const Pair& other) { return std::pair(one.a, one.b) < std::pair(other.a, other.b); }

double messages_of(const std::vector<Pair>& pairs) {
    double sum = 0;
    for (const Pair& pair : pairs) sum += pair.all.messages;
    return sum;
}

/// Calls visit(one's, other's) for every pair that either list has, in order; null where the pair is missing.
template <class Visit>
void merge(const std::vector<Pair>& one, const std::vector<Pair>& other, Visit visit) {
    size_t i = 0, j = 0;
    while (i < one.size() || j < other.size()) {
        if (j == other.size() || (i < one.size() && before(one[i], other[j]))) {
            visit(&one[i++], nullptr);
        } else if (i == one.size() || before(other[j], one[i])) {
            visit(nullptr, &other[j++]);
        } else {
            visit(&one[i++], &other[j++]);
        }
    }
}

}  // namespace

std::vector<Pair> pairs_of(const Span& span) {
    std::vector<Pair> all;
    all.reserve(span.sent.size());
    for (const Part& part : span.parts) {
        for (uint32_t i = part.first; i < part.first + part.count; ++i) {
            const Sent& sent = span.sent[i];
            if (sent.to == part.process) continue;
            all.push_back({std::min(sent.to, part.process), std::max(sent.to, part.process), sent.all, sent.on_connection,
                           sent.in_memory});
        }
    }
    std::sort(all.begin(), all.end(), before);
    size_t kept = 0;
    for (const Pair& pair : all) {
        if (kept > 0 && all[kept - 1].a == pair.a && all[kept - 1].b == pair.b) {
            all[kept - 1].all += pair.all;
            all[kept - 1].on_connection += pair.on_connection;
            all[kept - 1].in_memory += pair.in_memory;
        } else {
            all[kept++] = pair;
        }
    }
    all.resize(kept);
    return all;
}

std::vector<Pair> sum_of(const std::vector<Pair>& one, const std::vector<Pair>& other, double weight) {
    std::vector<Pair> out;
    out.reserve(std::max(one.size(), other.size()));
    merge(one, other, [&](const Pair* first, const Pair* second) {
        Pair& sum = out.emplace_back(first ? *first : Pair{second->a, second->b, {}, {}, {}});
        if (!second) return;
        sum.all += second->all * weight;
        sum.on_connection += second->on_connection * weight;
        sum.in_memory += second->in_memory * weight;
    });
    return out;
}

std::vector<Pair> pairs_of(const Run& run) {
    // Sum as in a merge sort, so that each pair is copied a few times and not once per span.
    std::vector<std::vector<Pair>> waiting;
    std::vector<size_t> summed;
    const auto join = [&] {
        std::vector<Pair> last = std::move(waiting.back());
        waiting.pop_back();
        waiting.back() = sum_of(waiting.back(), last);
        const size_t count = summed.back();
        summed.pop_back();
        summed.back() += count;
    };
    for (const Span& span : run.spans) {
        waiting.push_back(pairs_of(span));
        summed.push_back(1);
        while (summed.size() > 1 && summed[summed.size() - 2] <= summed.back()) join();
    }
    while (summed.size() > 1) join();
    return waiting.empty() ? std::vector<Pair>{} : std::move(waiting[0]);
}

void sort_by_messages(std::vector<Pair>& pairs) {
    std::sort(pairs.begin(), pairs.end(), [](const Pair& one, const Pair& other) {
        if (one.all.messages != other.all.messages) return one.all.messages > other.all.messages;
        return before(one, other);
    });
}

double likeness(const std::vector<Pair>& one, const std::vector<Pair>& other) {
    const double first = messages_of(one), second = messages_of(other);
    if (first == 0 || second == 0) return first == second ? 1 : 0;
    double common = 0;
    merge(one, other, [&](const Pair* a, const Pair* b) {
        if (a && b) common += std::min(a->all.messages / first, b->all.messages / second);
    });
    return common;
}

}  // namespace starling::analysis
