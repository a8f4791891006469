#include "starling/process_stat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/process.h"

namespace starling {

ProcStat read_process(int32_t pid) {
    std::ifstream file(fmt::format("/proc/{}/stat", find_shown_id(pid)));
    std::string line;
    std::getline(file, line);
    // The name in parentheses may contain any character.
    const size_t end = line.rfind(')');
    unsigned long user = 0, system = 0;
    long pages = 0;
    ProcStat process;
    if (line.empty() && pid > 0 && kill(pid, 0) == 0) process.state = '?';
    if (end == std::string::npos ||
        std::sscanf(line.c_str() + end + 1,
                    " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %*d %*d %*u %*u %ld", &process.state,
                    &user, &system, &pages) != 4)
        return process;
    process.ticks = user + system;
    process.memory_kb = static_cast<uint64_t>(pages) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 1024;
    return process;
}

}  // namespace starling
