// The signals that mpiexec and the daemons handle, and the signal actions that the processes of a daemon inherit.
#pragma once

#include <csignal>

namespace starling::launch {

/// Returns the signals that are passed on to ranks. SIGHUP is left out if it is ignored, as under nohup: then neither this process nor any
/// rank should receive it.
sigset_t forwarded_signals();

/// Returns whether the signal asks the ranks to end in their own time, after a checkpoint for example.
constexpr bool asks_to_end(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGHUP; }

/// Resets the forwarded signals to their default action. For a daemon: the processes it starts do not belong to the shell that started the
/// daemon, so they should not ignore the signals that this shell ignores.
void heed_all_signals();

}  // namespace starling::launch
