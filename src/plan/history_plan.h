// The plan that a program makes as it runs: the last occurrence of a phase, and what has followed it, is the plan of its next.
#pragma once

#include <vector>

#include "plan/source.h"

namespace starling::plan {

class HistoryPlan final : public Source {
  public:
    const Partners* partners(profile::PhaseId phase, uint64_t occurrence) override;
    void ended(profile::PhaseId phase, Partners partners, profile::PhaseId next) override;

  private:
    const Partners* last(profile::PhaseId phase) const;  ///< null: it has not ended yet

    struct Known {
        bool ended = false;
        Partners partners;          ///< of the last occurrence
        profile::PhaseId next = 0;  ///< what has followed it
    };
    std::vector<Known> known_;  ///< by phase
    Partners planned_;          ///< of the last call of partners()
};

}  // namespace starling::plan
