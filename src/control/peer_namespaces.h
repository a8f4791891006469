// Whether a process runs in this process's namespaces, as far as /proc shows it to an ordinary user.
#pragma once

#include <sys/types.h>

namespace starling::control {

/// Returns whether `process` runs in this process's PID and user namespaces. The kernel shows the namespaces of a process that is not
/// dumpable (a program file without read permission, prctl(PR_SET_DUMPABLE, 0)) to root only. Such a process is accepted in the host's user
/// namespace, where /proc shows enough, and refused in others.
bool shares_namespaces(pid_t process);
/// Returns whether the kernel refuses to show the namespaces of `process` to this process.
bool hides_namespaces(pid_t process);

}  // namespace starling::control
