// The host's side of the agent: the counterpart of sshd for one connection.
#pragma once

#include <string_view>

namespace starling::lab {

// Returns a TCP socket that listens for agents on all addresses of this host. Ends the process on failure.
int listen_for_agents();

// Serves one connected agent: reads its command, runs it under a shell with a login's environment, and transfers its streams. Reports the
// exit code once the command has ended and its output is closed; a background process that holds the output open delays this, as with ssh.
// If the agent disconnects, the command continues with closed streams, as with ssh without a terminal. Never returns.
[[noreturn]] void serve_agent(int connection);

// Runs process 1 of a host: serves agents if `agents`, and reaps orphaned processes. Writes `ready` to standard output once agents can
// connect, then redirects standard output and error to standard input's file. Ends only by a signal.
[[noreturn]] void serve_host(bool agents, std::string_view ready);

}  // namespace starling::lab
