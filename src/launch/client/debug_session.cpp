#include "launch/client/debug_session.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "launch/common/process_start.h"
#include "launch/common/text.h"

namespace starling::launch {

namespace {

bool is_stopped(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(file, line);
    const size_t end = line.rfind(')');
    return end != std::string::npos && line.compare(end, 3, ") T") == 0;
}

/// Waits until the process has stopped, 5 s at most: gdb would otherwise report its SIGSTOP.
void wait_until_stopped(pid_t pid) {
    for (int i = 0; i < 1000 && !is_stopped(pid); ++i) {
        const timespec step{0, 5'000'000};
        nanosleep(&step, nullptr);
    }
}

/// gdb stops where the process has just loaded the program, with a breakpoint at main() if the program has that symbol.
std::vector<std::string> gdb_command(const std::string& gdb, pid_t pid) {
    std::vector<std::string> words{gdb, "-q", "-iex", "set pagination off", "-p", std::to_string(pid)};
    // The SIGSTOP that holds the process is no event for the user. Without SIGCONT the process would be stopped again when gdb detaches.
    const std::string go_on = "shell kill -CONT " + std::to_string(pid);
    for (const std::string& command :
         {std::string("handle SIGSTOP SIGCONT nostop noprint nopass"), go_on, std::string("catch exec"),
          std::string("continue"), std::string("delete 1"), std::string("handle SIGSTOP SIGCONT stop print pass"),
          std::string("set breakpoint pending off"), std::string("tbreak main"), std::string("set breakpoint pending auto"),
          std::string("set pagination on")})
        words.insert(words.end(), {"-ex", command});
    return words;
}

std::string quoted_command(const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
    return line;
}

std::vector<std::string> tmux_command(const std::string& tmux, const std::string& gdb, const std::vector<pid_t>& processes) {
    std::vector<std::string> words{tmux, "-L", "starling-" + std::to_string(getpid())};
    for (size_t i = 0; i < processes.size(); ++i) {
        const std::string command = quoted_command(gdb_command(gdb, processes[i]));
        if (i == 0) words.insert(words.end(), {"new-session", command});
        if (i > 0) words.insert(words.end(), {";", "split-window", command, ";", "select-layout", "tiled"});
    }
    return words;
}

/// Returns the PATH of the processes of this program.
std::string search_path_of(const Program& program) {
    if (!program.search_path.empty()) return program.search_path;
    const char* path = std::getenv("PATH");
    std::string found = path && *path ? path : "/usr/local/bin:/usr/bin:/bin";
    for (const auto& [name, value] : program.environment)
        if (name == "PATH") found = value;
    return found;
}

/// Replaces the program's name by that of its file if an option chose where it is searched. Returns a sentence if there is no such program.
std::string find_debugged(Program& program) {
    const std::string found = find_program(program.argv[0], search_path_of(program), program.directory);
    StartedProcess failed;
    failed.step = "exec";
    if (found.empty()) return start_failure(program.argv[0], program.directory, failed);
    const bool relative = found[0] != '/' && !program.directory.empty();
    const std::string file = relative ? program.directory + "/" + found : found;
    struct stat status;
    if (access(file.c_str(), X_OK) != 0)
        failed.error = errno;
    else if (stat(file.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
        failed.error = EACCES;
    if (failed.error != 0) return start_failure(program.argv[0], program.directory, failed);
    if (!program.search_path.empty()) program.argv[0] = found;
    return {};
}

}  // namespace

bool parse_debugged(const std::string& text, std::vector<uint32_t>& ranks) {
    const char* at = text.data();
    const char* const end = at + text.size();
    for (;;) {
        uint32_t rank = 0;
        const auto [next, error] = std::from_chars(at, end, rank);
        if (error != std::errc()) return false;
        if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) ranks.push_back(rank);
        if (next == end) return true;
        if (*next != ',') return false;
        at = next + 1;
    }
}

std::string hold_debugged(Options& options) {
    if (options.debugged.empty()) return {};
    std::string list = ",";
    for (const uint32_t rank : options.debugged) list += std::to_string(rank) + ",";
    const std::string script = "case '" + list + R"(' in *",$STARLING_RANK,"*) kill -STOP $$;; esac; exec "$@")";
    for (size_t i = 0; i < options.programs.size(); ++i) {
        Program& program = options.programs[i];
        // The shell starts the program later, when a debugger is attached already, so a wrong name is reported now.
        if (const std::string problem = find_debugged(program); !problem.empty()) return options.with_start_hint(problem, i);
        program.started_later = program.argv[0];
        program.argv.insert(program.argv.begin(), {"/bin/sh", "-c", script, "sh"});
    }
    return {};
}

pid_t start_debuggers(const std::vector<pid_t>& processes, std::string& problem) {
    const char* path = std::getenv("PATH");
    const std::string where = path ? path : "/usr/bin:/bin";
    const std::string gdb = find_program("gdb", where, "/"), tmux = find_program("tmux", where, "/");
    const bool several = processes.size() > 1;
    if (gdb.empty()) problem = "--debug needs gdb, which is not in PATH: install gdb";
    if (several && tmux.empty()) problem = "--debug with several ranks needs tmux, which is not in PATH: install tmux";
    if (several && !isatty(STDIN_FILENO)) problem = "--debug with several ranks needs a terminal; --debug=RANK does not";
    if (!problem.empty()) return -1;
    const std::vector<std::string> words = several ? tmux_command(tmux, gdb, processes) : gdb_command(gdb, processes[0]);
    const std::vector<char*> argv = c_strings(words);
    const pid_t child = fork();
    if (child < 0) problem = std::string("--debug cannot start a process: ") + std::strerror(errno);
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    unsetenv("TMUX");
    for (const pid_t pid : processes) wait_until_stopped(pid);
    execve(words[0].c_str(), argv.data(), environ);
    _exit(127);
}

}  // namespace starling::launch
