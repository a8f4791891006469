// The plan that a program makes as it runs: the last occurrence of a phase, and what has followed it, is the plan of its next.
#pragma once

#include <optional>
#include <vector>

#include "plan/source.h"

namespace starling::plan {

class Learned final : public Source {
  public:
    const Partners* partners(profile::PhaseId phase, uint64_t occurrence) override;
    void ended(profile::PhaseId phase, Partners partners, profile::PhaseId next) override;

  private:
    std::vector<std::optional<Partners>> last_;  ///< by phase; priorities with what follows
};

}  // namespace starling::plan
