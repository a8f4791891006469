// starling plans: lists, shows and deletes what mpiexec keeps of applications' last runs (STARLING_PLAN=auto).
#pragma once

#include <string>
#include <vector>

namespace starling {

struct PlansOptions {
    std::vector<std::string> names;  ///< entries or applications; empty: all
    bool json = false;
};

/// Print the entries, one line each; one entry; or delete entries. Return the exit code.
int list_plans(const PlansOptions& options);
int show_plan(const PlansOptions& options);
int clear_plans(const PlansOptions& options);

}  // namespace starling
