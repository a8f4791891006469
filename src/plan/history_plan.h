// The plan that a program learns as it runs (STARLING_PLAN=learn). The plan for a phase is made from its last occurrence and the phases
// that followed that.
#pragma once

#include <vector>

#include "plan/source.h"

namespace starling::plan {

class HistoryPlan final : public Source {
  public:
    const Partners* partners(profile::PhaseId phase, uint64_t occurrence) override;
    void ended(profile::PhaseId phase, Partners partners, profile::PhaseId next) override;

  private:
    const Partners* last(profile::PhaseId phase) const;  ///< partners in the last occurrence; null: the phase has not ended yet

    struct PhaseHistory {
        bool ended = false;
        Partners partners;          ///< partners in the last occurrence of the phase
        profile::PhaseId next = 0;  ///< the phase that followed the last occurrence
    };
    std::vector<PhaseHistory> known_;  ///< history of each phase
    Partners planned_;                 ///< result of the last call of partners()
};

}  // namespace starling::plan
