// The program or library that contains a call site, so that `starling profile` can find the site's source line (docs/profile.md).
#pragma once

#include <cstdint>

#include "control/profile_report.h"

namespace starling::profile {

/// Returns the module that contains an address of this process. Its name is empty if no module does.
control::ProfileReport::ModuleRecord module_of(uint64_t address);

}  // namespace starling::profile
