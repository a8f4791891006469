// The host's side of the agent: what sshd would do for one connection.
#pragma once

#include <string_view>

namespace starling::lab {

// A TCP socket that listens for agents on all addresses of this host. Ends the process if it can't be had.
int listen_for_agents();

// Serves one connected agent: takes its command, runs it under a shell with a login's environment, carries
// its streams, and reports its exit code once it has ended and its output is closed (a background process
// that keeps them holds the agent up, as it does with ssh). If the agent goes away the command stays, its
// streams closed: again as with ssh without a terminal. Never returns.
[[noreturn]] void serve_agent(int connection);

// Process 1 of a host: serves agents, if it is to, and reaps whatever was orphaned. Writes `ready` to standard output once
// agents can come; standard output and error are what standard input is from then on. Ends by being killed.
[[noreturn]] void serve_host(bool agents, std::string_view ready);

}  // namespace starling::lab
