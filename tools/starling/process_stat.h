// What /proc shows about a process.
#pragma once

#include <cstdint>

namespace starling {

struct ProcStat {
    char state =
        '\0';  ///< state as in /proc/PID/stat; '\0': no such process; '?': the process exists, but /proc hides it (hidepid)
    uint64_t ticks = 0;      ///< processor time of all threads of the process, in clock ticks
    uint64_t memory_kb = 0;  ///< resident memory
};

ProcStat read_process(int32_t pid);

}  // namespace starling
