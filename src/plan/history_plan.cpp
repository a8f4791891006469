#include "plan/history_plan.h"

#include <algorithm>
#include <utility>

#include "plan/future_value.h"
#include "plan/phase_traffic.h"

namespace starling::plan {

namespace {

constexpr size_t kAhead = 8;  ///< number of phases to look ahead; later ones have a weight below a tenth

bool by_name(const Partner& one, const Partner& other) {
    return std::pair(one.job, one.rank) < std::pair(other.job, other.rank);
}

bool by_priority(const Partner& one, const Partner& other) {
    return one.priority > other.priority || (one.priority == other.priority && by_name(one, other));
}

/// Merges repeated partners and adds up their priorities.
void add_up(Partners& partners) {
    std::sort(partners.begin(), partners.end(), by_name);
    size_t kept = 0;
    for (const Partner& partner : partners) {
        if (kept > 0 && !by_name(partners[kept - 1], partner))
            partners[kept - 1].priority += std::min(partner.priority, UINT32_MAX - partners[kept - 1].priority);
        else
            partners[kept++] = partner;
    }
    partners.resize(kept);
}

}  // namespace

const Partners* HistoryPlan::last(profile::PhaseId phase) const {
    return phase < known_.size() && known_[phase].ended ? &known_[phase].partners : nullptr;
}

const Partners* HistoryPlan::partners(profile::PhaseId phase, uint64_t) {
    if (!last(phase)) return nullptr;
    std::vector<const Partners*> coming{last(phase)};
    while (coming.size() <= kAhead && last(known_[phase].next)) coming.push_back(last(phase = known_[phase].next));
    planned_.clear();
    for (auto one = coming.rbegin(); one != coming.rend(); ++one) {
        for (Partner& partner : planned_) partner.priority = static_cast<uint32_t>(worth_later(partner.priority));
        planned_.insert(planned_.end(), (*one)->begin(), (*one)->end());
        add_up(planned_);
    }
    std::erase_if(planned_, [](const Partner& partner) { return partner.priority == 0; });
    std::sort(planned_.begin(), planned_.end(), by_priority);
    if (planned_.size() > kMostPartners) planned_.resize(kMostPartners);
    return &planned_;
}

void HistoryPlan::ended(profile::PhaseId phase, Partners partners, profile::PhaseId next) {
    if (phase >= known_.size()) known_.resize(phase + 1);
    known_[phase] = {true, std::move(partners), next};
}

}  // namespace starling::plan
