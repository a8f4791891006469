#include "launch/process/binding.h"

#include <dlfcn.h>
#include <hwloc.h>

#include <utility>
#include <vector>

#include "base/symbol.h"

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
        return find_symbol(library, "hwloc_topology_init", topology_init) &&
               find_symbol(library, "hwloc_topology_load", topology_load) &&
               find_symbol(library, "hwloc_topology_destroy", topology_destroy) &&
               find_symbol(library, "hwloc_get_type_depth", get_type_depth) &&
               find_symbol(library, "hwloc_get_nbobjs_by_depth", get_nbobjs_by_depth) &&
               find_symbol(library, "hwloc_get_obj_by_depth", get_obj_by_depth) &&
               find_symbol(library, "hwloc_bitmap_next", bitmap_next);
    }
};

// Returns the kind of part that a hwloc object is; unset: none.
ProcessorPart part_of(hwloc_obj_type_t type) {
    switch (type) {
        case HWLOC_OBJ_CORE:
            return ProcessorPart::core;
        case HWLOC_OBJ_L1CACHE:
            return ProcessorPart::l1cache;
        case HWLOC_OBJ_L2CACHE:
            return ProcessorPart::l2cache;
        case HWLOC_OBJ_L3CACHE:
            return ProcessorPart::l3cache;
        case HWLOC_OBJ_PACKAGE:
            return ProcessorPart::package;
        default:
            return ProcessorPart::unset;
    }
}

// Describes a hardware thread. A part that the machine does not have is as large as the next larger one; a missing core is as small as the
// thread.
HardwareThread thread_of(const Hwloc& hwloc, hwloc_obj_t object) {
    constexpr uint32_t kMissing = ~0u;
    HardwareThread thread;
    thread.cpu = object->os_index;
    thread.parts.fill(kMissing);
    const auto set = [&](ProcessorPart part, uint32_t number) { thread.parts[static_cast<size_t>(part)] = number; };
    set(ProcessorPart::hwthread, object->logical_index);
    set(ProcessorPart::machine, 0);
    if (const int node = hwloc.bitmap_next(object->nodeset, -1); node >= 0)
        set(ProcessorPart::numa, static_cast<uint32_t>(node));
    for (hwloc_obj_t around = object->parent; around; around = around->parent)
        if (const ProcessorPart part = part_of(around->type); part != ProcessorPart::unset) set(part, around->logical_index);
    if (thread.in(ProcessorPart::core) == kMissing) set(ProcessorPart::core, object->logical_index);
    for (size_t i = HardwareThread::kParts - 1; i-- > 0;)
        if (thread.parts[i] == kMissing) thread.parts[i] = thread.parts[i + 1];
    return thread;
}

}  // namespace

std::string load_processors(ProcessorMap& out) {
    Hwloc hwloc{};
    if (!hwloc.load()) return "binding needs the library hwloc (apt-get install libhwloc15); or start with --bind-to none";
    cpu_set_t usable;
    hwloc_topology_t topology;
    if (sched_getaffinity(0, sizeof usable, &usable) != 0 || hwloc.topology_init(&topology) != 0) {
        return "hwloc can't determine the machine's cores; start with --bind-to none";
    }
    std::vector<HardwareThread> threads;
    if (hwloc.topology_load(topology) == 0) {
        const int depth = hwloc.get_type_depth(topology, HWLOC_OBJ_PU);
        const unsigned count = hwloc.get_nbobjs_by_depth(topology, depth);
        for (unsigned i = 0; i < count; ++i) {
            const hwloc_obj_t object = hwloc.get_obj_by_depth(topology, depth, i);
            if (object->os_index < CPU_SETSIZE && CPU_ISSET(object->os_index, &usable))
                threads.push_back(thread_of(hwloc, object));
        }
    }
    hwloc.topology_destroy(topology);
    out = ProcessorMap(std::move(threads));
    return out.empty() ? "no core is usable here; start with --bind-to none" : std::string();
}

}  // namespace starling::launch
