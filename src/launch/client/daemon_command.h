// `starling daemon start|stop|status`: controls the daemon for published names, and the standing daemons on several hosts.
#pragma once

#include <string>
#include <vector>

namespace starling::launch {

/// Runs the command (`arguments` follow "daemon") and prints its result. Returns the exit code: 0, 1 for failure, 2 for a wrong command
/// line, 3 for status when no daemon runs.
int daemon_command(const std::vector<std::string>& arguments);

/// Returns the usage text.
const char* daemon_usage();

}  // namespace starling::launch
