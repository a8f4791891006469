// `starling daemon start|stop|status`: the keeper of names, and the standing daemons on several hosts.
#pragma once

#include <string>
#include <vector>

namespace starling::launch {

/// Runs the command (`arguments` is what follows "daemon") and prints what came of it. Returns the exit
/// code: 0, 1 for failure, 2 for a wrong command line, 3 for status when no daemon runs.
int daemon_command(const std::vector<std::string>& arguments);

/// How it is called.
const char* daemon_usage();

}  // namespace starling::launch
