#include "launch/universe/port_search.h"

#include <algorithm>

namespace starling::launch {

namespace {

/// Returns the number of lookups that one host may have open. In a job of hundreds of hosts each gets fewer: when all ranks start to
/// communicate at once, the lookups of all hosts arrive at the root before the first table request.
uint32_t window_of(uint32_t hosts) {
    constexpr uint32_t kMost = 4, kAtTheRoot = 256;
    return std::clamp(kAtTheRoot / std::max(hosts, 1u), 1u, kMost);
}

}  // namespace

PortSearch::PortSearch(uint32_t hosts) : window_(window_of(hosts)), most_(window_) {}

void PortSearch::want(uint32_t host, uint32_t rank) {
    Host& entry = hosts_[host];
    if (!entry.open.contains(rank)) entry.wanted.insert(rank);
    if (met_.size() <= kFewHosts) met_.insert(host);
}

size_t PortSearch::idle_hosts() const {
    return static_cast<size_t>(std::count_if(hosts_.begin(), hosts_.end(), [](const auto& entry) {
        return entry.second.open.empty() && !entry.second.wanted.empty();
    }));
}

PortSearch::SearchStep PortSearch::next() {
    SearchStep step;
    if (table_wanted_) return step;
    const size_t idle = idle_hosts();
    if (idle == 0) return step;
    // After a table has arrived, only ranks that were late are missing: look up a few, or request the table again for many.
    if ((tables_ == 0 ? met_.size() : idle) > kFewHosts) {
        table_wanted_ = step.table = true;
        return step;
    }
    for (auto& [host, entry] : hosts_) {
        if (open_ >= most_) break;
        if (!entry.open.empty() || entry.wanted.empty()) continue;
        const uint32_t rank = *entry.wanted.begin();
        entry.wanted.erase(rank);
        entry.open.insert(rank);
        step.lookups.push_back(rank);
        ++open_;
        ++lookups_;
    }
    return step;
}

void PortSearch::drop_if_empty(uint32_t host) {
    const auto found = hosts_.find(host);
    if (found != hosts_.end() && found->second.wanted.empty() && found->second.open.empty()) hosts_.erase(found);
}

void PortSearch::answered(uint32_t host, uint32_t rank) {
    const auto found = hosts_.find(host);
    if (found == hosts_.end() || found->second.open.erase(rank) == 0) return;
    if (--open_ == 0) most_ = window_;
    drop_if_empty(host);
}

void PortSearch::on_table() {
    table_wanted_ = false;
    ++tables_;
}

std::vector<uint32_t> PortSearch::settle(uint32_t host, const std::function<bool(uint32_t)>& known) {
    std::vector<uint32_t> settled;
    const auto found = hosts_.find(host);
    if (found == hosts_.end()) return settled;
    std::erase_if(found->second.wanted, [&](uint32_t rank) {
        if (!known(rank)) return false;
        settled.push_back(rank);
        return true;
    });
    drop_if_empty(host);
    return settled;
}

std::vector<uint32_t> PortSearch::settle(const std::function<bool(uint32_t)>& known) {
    std::vector<uint32_t> all, settled;
    for (const auto& [host, entry] : hosts_) all.push_back(host);
    for (const uint32_t host : all) {
        const auto some = settle(host, known);
        settled.insert(settled.end(), some.begin(), some.end());
    }
    return settled;
}

void PortSearch::forget(uint32_t host, uint32_t rank) {
    const auto found = hosts_.find(host);
    if (found == hosts_.end()) return;
    found->second.wanted.erase(rank);
    if (found->second.open.erase(rank) > 0 && --open_ == 0) most_ = window_;
    drop_if_empty(host);
}

void PortSearch::forget_all() {
    hosts_.clear();
    open_ = 0;
    most_ = window_;
    table_wanted_ = false;
}

void PortSearch::start_more() { most_ = open_ + window_; }

bool PortSearch::held_back() const { return !table_wanted_ && open_ >= most_ && idle_hosts() > 0; }

}  // namespace starling::launch
