// Whether a process still runs, and how this one ends at once.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace starling {

/// Whether no thread of process `pid` can execute any more: it is gone, or a zombie that no one has waited
/// for yet. A system call or a few; for slow paths.
bool process_gone(pid_t pid);

/// Process ids that stand in shared memory are of one PID namespace, the launcher's. A process in another one (a container per rank) can
/// neither show its own there nor look after others.
bool knows_pids();
/// process_gone() for a pid of shared memory; false where it means nothing.
bool neighbour_gone(pid_t pid);
/// The PID namespace of this process; 0 if no /proc tells.
uint32_t find_pid_namespace();
/// The launcher's; 0: it has not said, and is taken to have this process's.
void set_launchers_pid_namespace(uint32_t number);

/// Who started a process, and when that was, in ticks since the host booted: together with its number that tells a process from
/// one that gets the number later. False if it is gone.
struct ProcessOrigin {
    pid_t parent = 0;
    uint64_t start = 0;
};
bool find_origin(pid_t pid, ProcessOrigin& out);

/// Writes out what the program has printed, before _exit(). Standard output and error only, and neither if another thread
/// has it for longer than a moment: fflush(nullptr) waits for one that reads standard input, for instance.
void flush_output();

/// Waits until what was printed has been read from the pipes or local sockets that take standard output and error, for
/// half a second at most. For who is about to be killed together with its reader: a process manager that hears of an
/// abort ends its helpers on the hosts at once, with what they have not read yet.
void let_output_be_read();

/// Asks for short slices of a core for this thread (Linux 6.12 and later): who runs for microseconds at a time gets its core the sooner.
/// Children begin as others do. Policy and niceness stay as they are; where that can't be, nothing happens.
void ask_for_short_slices();

}  // namespace starling
