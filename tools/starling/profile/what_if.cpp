#include "what_if.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "groups.h"

namespace starling::analysis {

namespace {

/// A set of limits of connections per process: bit k is the limit k. All limits are evaluated in one pass.
using Limits = uint32_t;
static_assert(kMostDirect < 32);

uint64_t key(uint32_t a, uint32_t b) { return uint64_t{std::min(a, b)} << 32 | std::max(a, b); }

/// The number of connections of each process, separately for every limit.
class Degrees {
  public:
    explicit Degrees(uint32_t processes) : of_(size_t{processes} * kStride, 0) {}

    void clear() { std::fill(of_.begin(), of_.end(), uint8_t{0}); }

    /// Connects two processes at all limits where both have room, except the limits in `without`. Returns the limits at which it connected
    /// them.
    Limits connect(uint32_t a, uint32_t b, Limits without = 0) {
        uint8_t* const first = &of_[size_t{a} * kStride];
        uint8_t* const second = &of_[size_t{b} * kStride];
        Limits out = 0;
        for (uint32_t most = 1; most <= kMostDirect; ++most) {
            if ((without >> most & 1) != 0 || first[most] >= most || second[most] >= most) continue;
            ++first[most];
            ++second[most];
            out |= Limits{1} << most;
        }
        return out;
    }

    /// Connects two processes at the limits in `where`, even if they have no room.
    void take(uint32_t a, uint32_t b, Limits where) {
        for (uint32_t most = 1; most <= kMostDirect; ++most) {
            if ((where >> most & 1) == 0) continue;
            ++of_[size_t{a} * kStride + most];
            ++of_[size_t{b} * kStride + most];
        }
    }

  private:
    static constexpr size_t kStride = kMostDirect + 1;
    std::vector<uint8_t> of_;
};

void add(std::vector<double>& curve, Limits where, double messages) {
    for (uint32_t most = 1; most <= kMostDirect; ++most)
        if ((where >> most & 1) != 0) curve[most] += messages;
}

/// A static selection: the first partners of each process get connections, which are never replaced.
class Fixed {
  public:
    explicit Fixed(uint32_t processes) : degrees_(processes) {}

    /// Connects the partners of a span in the order of first messages: first the first partner of every process, then the second, …
    void meet(const Span& span) {
        uint32_t longest = 0;
        for (const Part& part : span.parts) longest = std::max(longest, part.count);
        for (uint32_t nth = 0; nth < longest; ++nth) {
            for (const Part& part : span.parts) {
                if (nth >= part.count) continue;
                const Sent& sent = span.sent[part.first + nth];
                const uint32_t to = sent.to;
                if (to == part.process || sent.all.messages == 0) continue;
                Limits& open = open_[key(part.process, to)];
                open |= degrees_.connect(part.process, to, open);
            }
        }
    }
    Limits of(const Pair& pair) const {
        const auto found = open_.find(key(pair.a, pair.b));
        return found == open_.end() ? 0 : found->second;
    }

  private:
    Degrees degrees_;
    std::unordered_map<uint64_t, Limits> open_;
};

/// A simulation of connections that open and close. In each span the chosen pairs have one. Earlier connections stay if there is room, and
/// pairs that have sent enough messages get one if there is room.
class ConnectionTable {
  public:
    /// `ahead`: a chosen pair's connection is open when the span begins. Otherwise it opens on demand.
    ConnectionTable(bool ahead, uint32_t processes) : ahead_(ahead), degrees_(processes) {}

    /// Adds a span's messages on connections to the curve. `pairs` are sorted by messages; `chosen` has the limits at which each pair is
    /// chosen.
    void span(const std::vector<Pair>& pairs, const std::vector<Limits>& chosen, std::vector<double>& curve) {
        degrees_.clear();
        std::unordered_map<uint64_t, Limits> now;
        for (size_t i = 0; i < pairs.size(); ++i) degrees_.take(pairs[i].a, pairs[i].b, chosen[i]);
        for (size_t i = 0; i < pairs.size(); ++i) carry(pairs[i], chosen[i], now, curve);
        for (const auto& [which, open] : open_) {
            const auto talked = now.find(which);
            const Limits left = degrees_.connect(static_cast<uint32_t>(which >> 32), static_cast<uint32_t>(which),
                                                 ~open | (talked == now.end() ? 0 : talked->second));
            if (left != 0) now[which] |= left;
        }
        open_ = std::map<uint64_t, Limits>(now.begin(), now.end());
    }

  private:
    void carry(const Pair& pair, Limits chosen, std::unordered_map<uint64_t, Limits>& now, std::vector<double>& curve) {
        const uint64_t which = key(pair.a, pair.b);
        const auto found = open_.find(which);
        const Limits before = found == open_.end() ? 0 : found->second;
        const Limits kept = before & ~chosen ? degrees_.connect(pair.a, pair.b, ~before | chosen) : 0;
        const Limits at_once = (ahead_ ? chosen : chosen & before) | kept;
        add(curve, at_once, pair.all.messages);
        // Both processes send on the base path until one of them has reached the threshold, possibly after several spans.
        double& sent = sent_[which];
        const double missing = sent >= 2 * kOnDemandAfter ? 2 * kOnDemandAfter : 2 * kOnDemandAfter - sent;
        Limits late = 0;
        if (pair.all.messages >= missing) late = (chosen & ~at_once) | degrees_.connect(pair.a, pair.b, chosen | kept);
        add(curve, late, std::max(0.0, pair.all.messages - missing));
        sent += pair.all.messages;
        if (at_once | late) now[which] = at_once | late;
    }

    const bool ahead_;
    Degrees degrees_;
    std::map<uint64_t, Limits> open_;
    std::unordered_map<uint64_t, double> sent_;  ///< messages that each pair sent before this span
};

std::unordered_set<uint64_t> worth_opening(const Group& group) {
    std::unordered_set<uint64_t> out;
    for (const Pair& pair : group.pairs)
        if (is_worth_opening(pair)) out.insert(key(pair.a, pair.b));
    return out;
}

}  // namespace

std::vector<Pair> choose(const std::vector<Pair>& by_weight, uint32_t most, uint32_t processes) {
    std::vector<uint32_t> degree(processes, 0);
    std::vector<Pair> chosen;
    for (const Pair& pair : by_weight) {
        if (degree[pair.a] >= most || degree[pair.b] >= most || pair.all.messages <= 0) continue;
        ++degree[pair.a];
        ++degree[pair.b];
        chosen.push_back(pair);
    }
    return chosen;
}

WhatIf what_if(const Run& run) {
    WhatIf out;
    out.planned.assign(kMostDirect + 1, 0);
    out.chosen = out.on_demand = out.fixed = out.planned;
    Degrees degrees(run.processes);
    Fixed fixed(run.processes);
    ConnectionTable planned(true, run.processes), on_demand(false, run.processes);
    double all = 0, recorded = 0;
    const std::vector<Group> groups = groups_of(run);
    std::vector<const Group*> group_of(run.spans.size(), nullptr);
    for (const Group& group : groups)
        for (const size_t span : group.spans) group_of[span] = &group;
    for (size_t i = 0; i < run.spans.size(); ++i) {
        const Span& span = run.spans[i];
        std::vector<Pair> pairs = pairs_of(span);
        const std::unordered_set<uint64_t> worth = worth_opening(*group_of[i]);
        sort_by_messages(pairs);
        degrees.clear();
        fixed.meet(span);
        std::vector<Limits> chosen;
        for (const Pair& pair : pairs) {
            all += pair.all.messages;
            recorded += pair.on_connection.messages;
            chosen.push_back(worth.contains(key(pair.a, pair.b)) ? degrees.connect(pair.a, pair.b) : 0);
            add(out.chosen, chosen.back(), pair.all.messages);
            add(out.fixed, fixed.of(pair), pair.all.messages);
        }
        planned.span(pairs, chosen, out.planned);
        on_demand.span(pairs, chosen, out.on_demand);
    }
    if (all == 0) return out;
    for (std::vector<double>* curve : {&out.planned, &out.chosen, &out.on_demand, &out.fixed})
        for (double& share : *curve) share /= all;
    out.recorded = recorded / all;
    return out;
}

uint32_t WhatIf::knee() const {
    const double enough = 0.95 * chosen.back();
    return static_cast<uint32_t>(std::find_if(chosen.begin(), chosen.end(), [&](double share) { return share >= enough; }) -
                                 chosen.begin());
}

}  // namespace starling::analysis
