// Several hosts on one machine, to try things out.
#pragma once

#include <string_view>

namespace starling::job {

/// From now on this process, and the jobs it starts, are on a host of their own: this_host() is one that all have who give the
/// same name on this machine, and nobody else. To be called before anybody asks for it.
void set_host_apart(std::string_view name);

}  // namespace starling::job
