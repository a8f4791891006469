// Starts a launcher for a program that was started without one.
#pragma once

#include <string>

#include "job/job_segment.h"

namespace starling::control {

/// Starts `starlingd serve` for the singleton's job `own`, in a new session and not as a child of the program. Waits until the server has
/// written its socket's name into the job's header. Returns MPI_SUCCESS or MPI_ERR_OTHER with failure_text().
int start_server(job::JobSegment& own);

/// The byte that a slowly starting server sends periodically to extend the timeout.
inline constexpr char kStillStarting = ' ';

/// Runs `program arguments...` detached: double clone without copying memory, no SIGCHLD for the application, a new session, standard input
/// /dev/null. Passes the descriptor of a pipe as last argument and waits for a first line on it, for at most `seconds`. Each kStillStarting
/// before the line restarts this time. Returns true if the line is "ready"; else `problem` has the reason. The program inherits the
/// descriptor `inherited` under its number, unless that is negative.
bool start_detached(const std::string& program, const char* const* arguments, bool keep_output, std::string& problem,
                    int seconds = 10, int inherited = -1);

/// Returns the starlingd beside the library or program that contains this code, else the one in PATH; empty if there is none.
std::string find_starlingd();

}  // namespace starling::control
