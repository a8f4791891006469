// The plan that a program makes as it runs: the last occurrence of a phase is the plan of its next.
#pragma once

#include <optional>
#include <vector>

#include "plan/source.h"

namespace starling::plan {

class Learned final : public Source {
  public:
    const Partners* partners(profile::PhaseId phase, uint64_t occurrence) override;
    void ended(profile::PhaseId phase, Partners partners) override;

  private:
    std::vector<std::optional<Partners>> last_;  ///< by phase
};

}  // namespace starling::plan
