// Which signals mpiexec and the daemons take, and how processes that a daemon starts find them.
#pragma once

#include <csignal>

namespace starling::launch {

/// What is passed on to ranks. Without SIGHUP where it is ignored, as below nohup: then neither this process nor any rank is to hear of it.
sigset_t forwarded_signals();

/// For a daemon, whose processes are not those of the shell that it was started from: what that ignores they don't.
void heed_all_signals();

}  // namespace starling::launch
