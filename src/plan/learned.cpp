#include "plan/learned.h"

#include <algorithm>
#include <utility>

#include "plan/phase_traffic.h"

namespace starling::plan {

namespace {

/// A connection stays open until its place is needed, so what follows counts, too: each phase this much of the one before it.
constexpr double kHorizon = 0.75;

bool by_priority(const Partner& one, const Partner& other) { return one.priority > other.priority; }

/// Adds what is expected of the phase that follows.
Partners with_later(Partners now, const Partners& later) {
    const auto by_name = [](const Partner& one, const Partner& other) {
        return std::pair(one.job, one.rank) < std::pair(other.job, other.rank);
    };
    const size_t own = now.size();
    std::sort(now.begin(), now.end(), by_name);
    for (Partner partner : later) {
        partner.priority = static_cast<uint32_t>(kHorizon * partner.priority);
        const auto end = now.begin() + static_cast<ptrdiff_t>(own);
        const auto same = std::lower_bound(now.begin(), end, partner, by_name);
        if (same != end && same->job == partner.job && same->rank == partner.rank)
            same->priority += std::min(partner.priority, UINT32_MAX - same->priority);
        else if (partner.priority > 0)
            now.push_back(partner);
    }
    std::stable_sort(now.begin(), now.end(), by_priority);
    if (now.size() > kMostPartners) now.resize(kMostPartners);
    return now;
}

}  // namespace

const Partners* Learned::partners(profile::PhaseId phase, uint64_t) {
    return phase < last_.size() && last_[phase] ? &*last_[phase] : nullptr;
}

// What follows the next one is in its priorities.
void Learned::ended(profile::PhaseId phase, Partners partners, profile::PhaseId next) {
    if (phase >= last_.size()) last_.resize(phase + 1);
    const Partners* const later = this->partners(next, 0);
    last_[phase] = with_later(std::move(partners), later ? *later : Partners{});
}

}  // namespace starling::plan
