#include "launch/process/binding.h"

#include <dlfcn.h>
#include <hwloc.h>

#include <algorithm>

namespace starling::launch {

namespace {

// The functions of hwloc that are used, resolved at run time.
struct Hwloc {
    decltype(&hwloc_topology_init) topology_init;
    decltype(&hwloc_topology_load) topology_load;
    decltype(&hwloc_topology_destroy) topology_destroy;
    decltype(&hwloc_get_type_depth) get_type_depth;
    decltype(&hwloc_get_nbobjs_by_depth) get_nbobjs_by_depth;
    decltype(&hwloc_get_obj_by_depth) get_obj_by_depth;
    decltype(&hwloc_bitmap_next) bitmap_next;

    bool load() {
        void* library = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
        if (!library) return false;
        return find(library, "hwloc_topology_init", topology_init) && find(library, "hwloc_topology_load", topology_load) &&
               find(library, "hwloc_topology_destroy", topology_destroy) &&
               find(library, "hwloc_get_type_depth", get_type_depth) &&
               find(library, "hwloc_get_nbobjs_by_depth", get_nbobjs_by_depth) &&
               find(library, "hwloc_get_obj_by_depth", get_obj_by_depth) && find(library, "hwloc_bitmap_next", bitmap_next);
    }

  private:
    template <class F>
    static bool find(void* library, const char* name, F& function) {
        function = reinterpret_cast<F>(dlsym(library, name));
        return function != nullptr;
    }
};

}  // namespace

std::string CoreMap::load() {
    if (!cores_.empty()) return {};
    Hwloc hwloc{};
    if (!hwloc.load()) return "binding needs the library hwloc (apt-get install libhwloc15); or start with --bind-to none";
    cpu_set_t usable;
    hwloc_topology_t topology;
    if (sched_getaffinity(0, sizeof usable, &usable) != 0 || hwloc.topology_init(&topology) != 0) {
        return "hwloc can't determine the machine's cores; start with --bind-to none";
    }
    if (hwloc.topology_load(topology) == 0) {
        int depth = hwloc.get_type_depth(topology, HWLOC_OBJ_CORE);
        if (depth < 0) depth = hwloc.get_type_depth(topology, HWLOC_OBJ_PU);
        const unsigned count = hwloc.get_nbobjs_by_depth(topology, depth);
        for (unsigned i = 0; i < count; ++i) {
            const hwloc_obj_t object = hwloc.get_obj_by_depth(topology, depth, i);
            ProcessorCore core{};
            CPU_ZERO(&core.cpus);
            for (int cpu = hwloc.bitmap_next(object->cpuset, -1); cpu >= 0; cpu = hwloc.bitmap_next(object->cpuset, cpu)) {
                if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &usable)) continue;
                if (CPU_COUNT(&core.cpus) == 0) core.first = static_cast<uint32_t>(cpu);
                CPU_SET(cpu, &core.cpus);
            }
            if (CPU_COUNT(&core.cpus) > 0) cores_.push_back(core);
        }
    }
    hwloc.topology_destroy(topology);
    return cores_.empty() ? "no core is usable here; start with --bind-to none" : std::string();
}

uint32_t CoreMap::claim(cpu_set_t& cpus) {
    const auto least = std::min_element(
        cores_.begin(), cores_.end(), [](const ProcessorCore& a, const ProcessorCore& b) { return a.processes < b.processes; });
    ++least->processes;
    cpus = least->cpus;
    return static_cast<uint32_t>(least - cores_.begin());
}

}  // namespace starling::launch
