#include "plan/file_plan.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/config.h"
#include "base/error.h"
#include "link/job.h"

namespace starling::plan {

GivenPhases::GivenPhases(uint64_t job, const control::PlanReply& plan) {
    for (const control::PlannedPhase& phase : plan.phases) {
        Partners partners;
        for (const control::PlannedPeer& peer : phase.peers) partners.push_back({job, peer.rank, peer.priority});
        by_name_[phase.name].push_back(entries_.size());
        entries_.push_back({phase.name, phase.from, phase.to, std::move(partners)});
    }
    for (auto& [name, indexes] : by_name_)
        std::stable_sort(indexes.begin(), indexes.end(),
                         [this](size_t a, size_t b) { return entries_[a].from > entries_[b].from; });
}

const GivenPhases::PlanEntry* GivenPhases::entry(const std::string& phase, uint64_t occurrence) const {
    const auto known = by_name_.find(phase);
    if (known == by_name_.end()) return nullptr;
    const auto& indexes = known->second;
    const auto at = std::lower_bound(indexes.begin(), indexes.end(), occurrence,
                                     [this](size_t i, uint64_t wanted) { return entries_[i].from > wanted; });
    return at != indexes.end() && entries_[*at].to >= occurrence ? &entries_[*at] : nullptr;
}

const Partners* GivenPhases::find(const std::string& phase, uint64_t occurrence) const {
    const PlanEntry* const found = entry(phase, occurrence);
    return found ? &found->partners : nullptr;
}

const Partners* GivenPhases::after(const std::string& phase, uint64_t occurrence) const {
    const PlanEntry* next = entry(phase, occurrence);
    const PlanEntry* const end = entries_.data() + entries_.size();
    while (next && next != end && next->name == phase) ++next;
    return next && next != end ? &next->partners : nullptr;
}

namespace {

/// Sets a variable to the plan's value, unless the user has set it.
void set_limit(const char* name, uint64_t limit) {
    const Variable* const variable = find_variable(name);
    if (limit == control::PlanLimits::kNone || !variable || source_of(*variable) != VariableSource::built_in) return;
    if (set_variable(name, std::to_string(limit).c_str()) && config().verbose > 0)
        std::fprintf(stderr, "starling: a setting of the plan was not applied: %.*s\n", static_cast<int>(failure_text().size()),
                     failure_text().data());
    clear_failure();
}

}  // namespace

bool FilePlan::poll() {
    std::optional<control::PlanReply> plan;
    if (!request_.poll(plan)) return false;
    state_ = FilePlanState::over;
    if (!plan) return false;
    phases_ = GivenPhases(link::self().job->address().id, *plan);
    set_limit("STARLING_MAX_DIRECT", plan->limits.max_direct);
    set_limit("STARLING_MAX_CONNECTIONS", plan->limits.max_connections);
    set_limit("STARLING_EAGER_LIMIT", plan->limits.eager_limit);
    return !plan->phases.empty();
}

const Partners* FilePlan::partners(profile::PhaseId phase, uint64_t occurrence) {
    if (state_ == FilePlanState::not_asked) state_ = request_.start() ? FilePlanState::asked : FilePlanState::over;
    return phases_.find(profile::phase(phase).name, occurrence);
}

const Partners* FilePlan::partners_after(profile::PhaseId phase, uint64_t occurrence) {
    return phases_.after(profile::phase(phase).name, occurrence);
}

}  // namespace starling::plan
