// `starling why`: reports what the processes of a running job wait for, and why the wait does not end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace starling {

struct WhyOptions {
    std::string job;                 ///< filter of jobs: begin of an id, or part of a command
    double interval = 0.3;           ///< seconds between the two inspections
    bool all_users = false;          ///< true: include jobs of other users, whose memory may hold false values
    bool here = false;               ///< true: inspect this host only
    std::vector<std::string> hosts;  ///< additional hosts to inspect
    bool stacks = false;
    bool all_frames = false;  ///< true: stacks with the frames and threads of the library
    bool json = false;
    bool raw = false;            ///< true: print the output that `starling why` on another host parses
    int launcher = 0;            ///< process id of a launcher: only its jobs are inspected
    double quiet = 0;            ///< report only if no process has made progress for this number of seconds
    bool ended_awaited = false;  ///< true: report only if a process waits for one that has ended
};

/// Inspects and reports the jobs. Returns the exit code: 0 if no process is stuck (hang::Verdict), 3 if one is, 1 if there is no such job.
int run_why(const WhyOptions& options);

/// Inspects one job and returns lines that explain the wait of one rank: its sentence, the findings, and the other ranks' states.
/// `options.job` is the job's id. Takes `options.interval`, or up to 15 s if other hosts are asked.
std::vector<std::string> explain_rank(const WhyOptions& options, uint32_t rank);

}  // namespace starling
