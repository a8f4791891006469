// The plan file that mpiexec --plan has read. When the first phase begins, a rank asks its launcher for its part of the plan and continues
// without waiting; poll() receives the answer.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "control/plan_reply.h"
#include "plan/plan_request.h"
#include "plan/source.h"

namespace starling::plan {

/// The partners that a plan file lists, by phase.
class GivenPhases {
  public:
    GivenPhases() = default;
    /// `job` is the id of the job whose ranks the plan names.
    GivenPhases(uint64_t job, const control::PlanReply& plan);
    /// Returns the partners of an occurrence (1, 2, …) of a phase; null if the plan does not list it.
    const Partners* find(const std::string& phase, uint64_t occurrence) const;
    /// Returns the partners of the plan's next entry for a different phase; null if there is none.
    const Partners* after(const std::string& phase, uint64_t occurrence) const;

  private:
    struct PlanEntry {
        std::string name;
        uint64_t from, to;
        Partners partners;
    };
    const PlanEntry* entry(const std::string& phase, uint64_t occurrence) const;

    std::vector<PlanEntry> entries_;                                ///< entries of the plan, in its order
    std::unordered_map<std::string, std::vector<size_t>> by_name_;  ///< indexes of a phase's entries, latest first
};

class FilePlan final : public Source {
  public:
    const Partners* partners(profile::PhaseId phase, uint64_t occurrence) override;
    const Partners* partners_after(profile::PhaseId phase, uint64_t occurrence) override;
    bool waits() const override { return state_ == FilePlanState::asked; }
    bool poll() override;

  private:
    enum class FilePlanState : uint8_t { not_asked, asked, over } state_ = FilePlanState::not_asked;
    PlanRequest request_;
    GivenPhases phases_;
};

}  // namespace starling::plan
