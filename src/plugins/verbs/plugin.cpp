#include "plugins/verbs/plugin.h"

#include <infiniband/verbs.h>

#include <cstdio>
#include <exception>

#include "plugins/verbs/device_list.h"
#include "plugins/verbs/port.h"

namespace {

using namespace starling::verbs;

int list(PortFacts* out, int most, const DeviceOptions* options) { return list_ports(out, most, *options); }

Port* open(const PortFacts* which, const DeviceOptions* options, char* problem, size_t problem_size) {
    // Must precede the registration of any memory, so that a child of fork() takes no pages from the device. New kernels do not need it.
    ibv_fork_init();
    try {
        return VerbsPort::open(*which, *options, problem, problem_size);
    } catch (const std::exception& fault) {
        std::snprintf(problem, problem_size, "%s", fault.what());
        return nullptr;
    }
}

}  // namespace

extern "C" constexpr Plugin starling_verbs_plugin = {kPluginVersion, list, open};
