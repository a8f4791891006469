// What the launcher knows of a job: how it is to be started, and what became of its processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "boot/job_segment.h"
#include "launch/event_loop.h"

namespace starling::launch {

/// One command of a job: `count` processes that run the same program.
struct Program {
    std::vector<std::string> argv;  ///< argv[0] is looked up in `search_path`
    uint32_t count = 1;
    std::string directory;                                         ///< absolute; empty: the launcher's
    std::string search_path;                                       ///< ':'-separated; empty: PATH
    std::vector<std::pair<std::string, std::string>> environment;  ///< set on top of the launcher's
    bool clean_environment = false;                                ///< not on top of it, but alone
    int32_t appnum = 0;
    std::vector<uint32_t> soft;  ///< counts that will do as well, ascending; empty: only `count` will
};

struct JobSpec {
    std::vector<Program> programs;
    std::string blob;            ///< for the segment: the parents' description, opaque here
    boot::JobId parent = 0;      ///< the job that asked for the spawn, 0 if none
    bool forward_input = false;  ///< the launcher's standard input goes to rank 0
};

struct Rank {
    pid_t pid = -1;  ///< also its process group
    bool running = false;
    volatile pid_t* guard_slot = nullptr;
    int core = -1;  ///< in the launcher's CoreMap; -1: not bound
};

struct Job {
    uint32_t number = 0;  ///< 0 for the job mpiexec was called for, then counting the spawned
    boot::JobSegment segment;
    std::vector<Rank> ranks;
    std::vector<std::string> programs;  ///< by appnum, for messages
    uint32_t running = 0;               ///< ranks not reaped yet
    boot::JobId parent = 0;
    bool connected = true;  ///< to its parent: goes down with it
    bool external = false;  ///< a singleton's: not started by this launcher
    bool failing = false;
    int exit_code = 0;                ///< of the first rank that failed
    EventLoop::TimerId deadline = 0;  ///< when failing: the time for SIGKILL

    boot::JobId id() const { return segment.header().id; }
};

}  // namespace starling::launch
