// A launcher for a program that was started without one.
#pragma once

#include <string>

#include "job/job_segment.h"

namespace starling::control {

/// Starts `starlingd serve` for the singleton's job `own`, as a process of its own session that is nobody's
/// child, and waits until it has written its socket's name into the header. MPI_SUCCESS or MPI_ERR_OTHER
/// with failure_text().
int start_server(job::JobSegment& own);

/// Who takes longer says now and then that it is alive.
inline constexpr char kStillStarting = ' ';

/// Runs `program arguments...` detached: double clone without copying memory, no SIGCHLD for the
/// application, a new session, standard input /dev/null. Waits for its first line on the pipe whose
/// descriptor is its last argument, for `seconds` at most, anew with each kStillStarting before it. True if that line is "ready"; else `problem` tells why not.
/// It keeps the descriptor `inherited` under its number, if there is one.
bool start_detached(const std::string& program, const char* const* arguments, bool keep_output, std::string& problem,
                    int seconds = 10, int inherited = -1);

/// starlingd beside the library or program this code is in, else in PATH; empty if there is none.
std::string find_starlingd();

}  // namespace starling::control
