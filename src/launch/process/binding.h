// --bind-to core: which core each process gets.
#pragma once

#include <sched.h>

#include <cstdint>
#include <string>
#include <vector>

namespace starling::launch {

/// The cores this launcher may use, and how many of its processes each one has. hwloc is loaded when this
/// is asked for and not before: starting it takes longer than starting a job.
class CoreMap {
  public:
    /// An empty string, or the sentence that tells why cores can't be found out.
    std::string load();

    /// The core with the fewest processes, the first of them: repeated spawns spread. `cpus` gets all its
    /// hardware threads. Returns its index for release().
    uint32_t take(cpu_set_t& cpus);
    void release(uint32_t core) { --cores_[core].processes; }
    /// The operating system's number of its first hardware thread.
    uint32_t first_cpu(uint32_t core) const { return cores_[core].first; }

  private:
    struct Core {
        cpu_set_t cpus;
        uint32_t first;
        uint32_t processes;
    };
    std::vector<Core> cores_;
};

}  // namespace starling::launch
