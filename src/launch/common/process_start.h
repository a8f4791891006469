// Starting one process, fast, with an exact account of what went wrong.
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

/// What a process is to be; pointers must stay valid during start_process() only.
struct ProcessStart {
    const char* path = nullptr;  ///< to execve; relative paths are looked up after the change to `directory`
    char* const* argv = nullptr;
    char* const* envp = nullptr;
    const char* directory = nullptr;  ///< null: the launcher's
    int input = -1;                   ///< -1: /dev/null
    int output = -1, error = -1;      ///< -1: the launcher's
    bool keeps_writing = false;       ///< to a terminal of whose foreground it is not, even if `stty tostop` forbids it
    const cpu_set_t* cpus = nullptr;  ///< null: unbound
    /// Cores to begin on, without being bound to them: `usable` is what the process may use, and `place` learns which core it
    /// got. All three or none.
    const cpu_set_t* begin_on = nullptr;
    const cpu_set_t* usable = nullptr;
    std::atomic<uint32_t>* place = nullptr;
    volatile pid_t* guard_slot = nullptr;
    const sigset_t* signals = nullptr;    ///< mask to start with
    const rlimit* descriptors = nullptr;  ///< RLIMIT_NOFILE to start with; null: as is
};

struct StartedProcess {
    pid_t pid = -1;         ///< leader of a new process group of the same number; gets SIGKILL when the launcher dies
    int error = 0;          ///< errno, 0 if the program runs
    const char* step = "";  ///< what failed: "fork", "chdir", "bind", "exec"
};

/// Starts the process by vfork: the caller continues when the program runs or has failed to.
StartedProcess start_process(const ProcessStart& start);

/// Finds a program as a shell would, in the directories of `path` (':'-separated), then in `directory`. A
/// name with a slash is given back as it is. An empty string if there is none.
std::string find_program(std::string_view name, std::string_view path, std::string_view directory);

/// One sentence: file, directory, reason, remedy.
std::string start_failure(std::string_view program, std::string_view directory, const StartedProcess& process);

/// An array of C strings for execve, ended by null. The strings must outlive it.
std::vector<char*> c_strings(const std::vector<std::string>& strings);

}  // namespace starling::launch
