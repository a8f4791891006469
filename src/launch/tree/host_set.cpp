#include "launch/tree/host_set.h"

#include <algorithm>

namespace starling::launch {

namespace {

// Visits the borders of both sets in order; a stretch between two borders belongs to the result if `keep(in a, in b)`.
template <class Keep>
std::vector<HostSet::HostRun> combine(const std::vector<HostSet::HostRun>& a, const std::vector<HostSet::HostRun>& b,
                                      Keep keep) {
    std::vector<HostSet::HostRun> result;
    size_t i = 0, j = 0;  // border n belongs to run n / 2: its first host if n is even, its end if odd
    const auto border = [](const std::vector<HostSet::HostRun>& runs, size_t n) -> uint64_t {
        if (n / 2 >= runs.size()) return uint64_t{1} << 32;
        return n % 2 == 0 ? runs[n / 2].first : runs[n / 2].end;
    };
    bool inside = false;
    while (i < 2 * a.size() || j < 2 * b.size()) {
        const uint64_t at = std::min(border(a, i), border(b, j));
        while (i < 2 * a.size() && border(a, i) == at) ++i;
        while (j < 2 * b.size() && border(b, j) == at) ++j;
        const bool now = keep(i % 2 == 1, j % 2 == 1);
        if (now && !inside) result.push_back({static_cast<TreeHostId>(at), 0});
        if (!now && inside) result.back().end = static_cast<TreeHostId>(at);
        inside = now;
    }
    return result;
}

}  // namespace

HostSet HostSet::of(std::vector<TreeHostId> hosts) {
    if (!std::is_sorted(hosts.begin(), hosts.end())) std::sort(hosts.begin(), hosts.end());
    HostSet set;
    for (const TreeHostId host : hosts) {
        if (!set.runs_.empty() && host < set.runs_.back().end) continue;
        if (!set.runs_.empty() && host == set.runs_.back().end) {
            ++set.runs_.back().end;
        } else {
            set.runs_.push_back({host, host + 1});
        }
    }
    return set;
}

size_t HostSet::size() const {
    size_t n = 0;
    for (const HostRun& run : runs_) n += run.end - run.first;
    return n;
}

bool HostSet::contains(TreeHostId host) const {
    const auto after =
        std::upper_bound(runs_.begin(), runs_.end(), host, [](TreeHostId h, const HostRun& r) { return h < r.first; });
    return after != runs_.begin() && host < std::prev(after)->end;
}

void HostSet::add(const HostSet& other) {
    runs_ = combine(runs_, other.runs_, [](bool a, bool b) { return a || b; });
}

void HostSet::remove(const HostSet& other) {
    runs_ = combine(runs_, other.runs_, [](bool a, bool b) { return a && !b; });
}

HostSet HostSet::intersection(const HostSet& other) const {
    return HostSet(combine(runs_, other.runs_, [](bool a, bool b) { return a && b; }));
}

std::vector<TreeHostId> HostSet::list() const {
    std::vector<TreeHostId> hosts;
    hosts.reserve(size());
    for (const HostRun& run : runs_) {
        for (TreeHostId host = run.first; host < run.end; ++host) hosts.push_back(host);
    }
    return hosts;
}

void HostSet::encode(Writer& out) const {
    out.number(static_cast<uint32_t>(runs_.size()));
    for (const HostRun& run : runs_) out.number(run.first).number(run.end);
}

bool HostSet::decode(Reader& in, HostSet& out) {
    const uint32_t n = in.count(8);
    out.runs_.clear();
    out.runs_.reserve(n);
    for (uint32_t i = 0; i < n; ++i) {
        const auto first = in.number<TreeHostId>();
        const auto end = in.number<TreeHostId>();
        const bool ordered = out.runs_.empty() || first > out.runs_.back().end;
        if (!in.ok() || !ordered || first >= end || end > kMostHosts) return false;
        out.runs_.push_back({first, end});
    }
    return in.ok();
}

}  // namespace starling::launch
