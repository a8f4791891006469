// Queries about other processes of this host, and preparations for the immediate end of this one.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace starling {

/// Returns getpid(), which is a system call, without calling the system each time. Not for the children of fork().
int32_t own_pid();

/// Returns whether no thread of process `pid` can execute its program any more: it has ended, the kernel is ending all its threads, or it is
/// a zombie that its parent has not waited for yet.
/// Makes one system call or a few; for slow paths.
bool process_ended(pid_t pid);

/// Returns a thread of process `pid` that executes its program, or 0 if /proc shows none. If a program's first thread has ended by
/// pthread_exit(), the kernel accesses the memory and the descriptors of the process only under the ids of its other threads.
pid_t find_executing_thread(pid_t pid);

/// Returns the id under which /proc shows the memory, program, environment and state of process `pid`: pid itself or, if its first thread
/// has ended, find_executing_thread().
pid_t find_shown_id(pid_t pid);

/// Writes the path in /proc of a descriptor of process `pid`, for open(), stat() and readlink().
using DescriptorPath = char[64];
void find_descriptor_path(pid_t pid, int descriptor, DescriptorPath& path);

/// Returns whether the process ids in shared memory are valid here. They are those of one PID namespace, the launcher's. A process in
/// another namespace (a container per rank) can neither publish its own id nor check others by theirs.
bool knows_pids();
/// Returns whether /proc shows this PID namespace's processes. False if it is not mounted, or belongs to another namespace, as under
/// `unshare --pid --fork`: there /proc/<pid> is another process. The answer of the first call stays.
bool proc_shows_pids();
/// Returns process_ended() for a pid from shared memory; false where such pids mean nothing.
bool neighbour_ended(pid_t pid);
/// Returns the PID namespace of this process, or 0 if /proc does not show it.
uint32_t find_pid_namespace();
/// Sets the launcher's PID namespace; with 0, for unknown, it is assumed to be that of this process.
void set_launchers_pid_namespace(uint32_t number);

/// A process's parent, and its start time in ticks since the host booted. Pid and start time together distinguish the process from a later
/// one with its pid. find_origin() returns false if there is no such process.
struct ProcessOrigin {
    pid_t parent = 0;
    uint64_t start = 0;
};
bool find_origin(pid_t pid, ProcessOrigin& out);

/// Writes the program's buffered output before _exit(). Flushes only standard output and error, and skips a stream that another thread
/// locks for longer than a moment. (fflush(nullptr) would wait, for instance, for a thread that reads standard input.)
void flush_output();

/// Waits until the readers of standard output and error have read all data from pipes and local sockets, for half a second at most. Called
/// before this process is killed together with its reader. A process manager ends its helpers on the hosts as soon as it is notified of an
/// abort, and output that they have not read is lost.
void drain_output();

/// Requests short time slices for this thread (Linux 6.12 and later): the scheduler runs a thread sooner if it asks for microseconds only.
/// Its share of the core stays the same. Children and new threads start with the default. Policy and niceness stay unchanged; where the
/// request is impossible, nothing happens. `microseconds`: from 100 on.
void request_short_slices(uint32_t microseconds = 100);

}  // namespace starling
