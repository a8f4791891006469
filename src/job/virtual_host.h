// Simulation of several hosts on one machine, for tests.
#pragma once

#include <string_view>

namespace starling::job {

/// Puts this process and the jobs it starts on a virtual host, whose this_host() depends on `name`. Processes on this machine with equal
/// names are on one virtual host. To be called before the first this_host().
void set_host_apart(std::string_view name);

}  // namespace starling::job
