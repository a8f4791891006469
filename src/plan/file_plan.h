// The plan that mpiexec --plan has read. A rank asks its launcher for its part when the first phase begins, and goes on; it has it when
// it polls and the answer is there.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "control/control.h"
#include "control/plan_reply.h"
#include "plan/source.h"

namespace starling::plan {

/// What a plan says, by phase.
class GivenPhases {
  public:
    GivenPhases() = default;
    /// `job`: whose ranks the plan names.
    GivenPhases(uint64_t job, const control::PlanReply& plan);
    /// Null: the plan does not name this occurrence.
    const Partners* find(const std::string& phase, uint64_t occurrence) const;
    /// Of the entry of another name that follows in the plan.
    const Partners* after(const std::string& phase, uint64_t occurrence) const;

  private:
    struct Entry {
        std::string name;
        uint64_t from, to;
        Partners partners;
    };
    const Entry* entry(const std::string& phase, uint64_t occurrence) const;

    std::vector<Entry> entries_;                                    ///< in the plan's order
    std::unordered_map<std::string, std::vector<size_t>> by_name_;  ///< entries, by falling `from`
};

class FilePlan final : public Source {
  public:
    const Partners* partners(profile::PhaseId phase, uint64_t occurrence) override;
    const Partners* partners_after(profile::PhaseId phase, uint64_t occurrence) override;
    bool waits() const override { return state_ == State::asked; }
    bool poll() override;

  private:
    void ask();

    enum class State : uint8_t { not_asked, asked, over } state_ = State::not_asked;
    control::ControlCall call_;
    GivenPhases phases_;
};

}  // namespace starling::plan
