// Selects the core of each process for --bind-to core.
#pragma once

#include <sched.h>

#include <cstdint>
#include <string>
#include <vector>

namespace starling::launch {

/// The cores that this launcher may use, and how many of its processes run on each. hwloc is loaded on demand only: starting it takes
/// longer than starting a job.
class CoreMap {
  public:
    /// Loads the cores through hwloc. Returns an empty string, or a sentence that describes the error.
    std::string load();

    /// Takes the first of the cores with the fewest processes, so that repeated spawns spread. Sets `cpus` to all hardware threads of that
    /// core. Returns the core's index for release().
    uint32_t claim(cpu_set_t& cpus);
    void release(uint32_t core) { --cores_[core].processes; }
    /// Returns the operating system's number of the core's first hardware thread.
    uint32_t first_cpu(uint32_t core) const { return cores_[core].first; }

  private:
    struct ProcessorCore {
        cpu_set_t cpus;
        uint32_t first;
        uint32_t processes;
    };
    std::vector<ProcessorCore> cores_;
};

}  // namespace starling::launch
