// Starts one process, fast, and reports exactly which step failed.
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace starling::launch {

/// Properties of a process to start. The pointers must stay valid during start_process() only.
struct ProcessStart {
    const char* path = nullptr;  ///< path for execve; a relative one is looked up after the change to `directory`
    char* const* argv = nullptr;
    char* const* envp = nullptr;
    const char* directory = nullptr;  ///< working directory of the process; null: the launcher's
    int input = -1;                   ///< descriptor for standard input; -1: /dev/null
    int output = -1, error = -1;      ///< descriptors for standard output and error; -1: the launcher's own
    bool keeps_writing = false;       ///< true: may write to a terminal as a background process, even under `stty tostop`
    const cpu_set_t* cpus = nullptr;  ///< cores to bind the process to; null: not bound
    /// Cores on which the process starts without being bound to them. `usable` holds the cores that the process may use later; the core on
    /// which it starts is stored in `place`. All three or none must be set.
    const cpu_set_t* begin_on = nullptr;
    const cpu_set_t* usable = nullptr;
    std::atomic<uint32_t>* place = nullptr;
    volatile pid_t* guard_slot = nullptr;
    const sigset_t* signals = nullptr;    ///< signal mask with which the process starts
    const rlimit* descriptors = nullptr;  ///< RLIMIT_NOFILE of the process; null: the launcher's
};

struct StartedProcess {
    pid_t pid = -1;         ///< pid, also of its new process group; receives SIGKILL when the launcher dies
    int error = 0;          ///< errno of the failed step; 0 if the program runs
    const char* step = "";  ///< what failed: "fork", "chdir", "bind", "exec", "input"
    std::string file;       ///< output file that could not be opened; empty: another failure
};

/// Starts the process by vfork: returns when the program runs or has failed to start.
StartedProcess start_process(const ProcessStart& start);

/// Waits for the end of the child `pid`, as waitpid() does, but also goes on after an interruption (which sandboxes may report even for
/// WNOHANG). Returns `pid`, 0 if it still runs and `options` has WNOHANG, or -1.
pid_t reap_process(pid_t pid, int& status, int options = 0);

/// Finds a program as a shell would: in the directories of `path` (':'-separated), then in `directory`. Returns a name with a slash
/// unchanged, and an empty string if the program is not found.
std::string find_program(std::string_view name, std::string_view path, std::string_view directory);

/// Returns one sentence about a failed start, with file, directory, reason and remedy.
std::string start_failure(std::string_view program, std::string_view directory, const StartedProcess& process);

/// Returns a null-terminated array of C strings for execve. The strings must outlive the array.
std::vector<char*> c_strings(const std::vector<std::string>& strings);

}  // namespace starling::launch
