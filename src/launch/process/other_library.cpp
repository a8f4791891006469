#include "launch/process/other_library.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

#include "launch/process/elf_file.h"

namespace starling::launch {

namespace {

/// Beginnings of the names that MPI libraries have for the loader.
struct Name {
    std::string_view begin;
    const char* mpi;
    const char* binary_interface;
};
constexpr Name kNames[] = {
    {"libmpi.so.12", "MPICH, Intel MPI or MVAPICH", "mpich"},
    {"libmpifort.so.12", "MPICH, Intel MPI or MVAPICH", "mpich"},
    {"libmpicxx.so.12", "MPICH, Intel MPI or MVAPICH", "mpich"},
    {"libmpich", "MPICH", "mpich"},
    {"libmpi_cray.so.", "Cray MPICH", ""},
    {"libmpi_mpifh.so.40", "Open MPI", "openmpi"},
    {"libmpi_usempi", "Open MPI", "openmpi"},
    {"libmpi_cxx.so.40", "Open MPI", "openmpi"},
    {"libmpi.so.40", "Open MPI", "openmpi"},
    {"libmpi.so.", "Open MPI of another series than 4 and 5", ""},
};
constexpr std::string_view kOwn = "libmpi_abi.so.";

constexpr int kMostProcesses = 64;  // looked at behind a wrapper

std::string text_of(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return {};
    std::string text;
    char buffer[16 * 1024];
    for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(got));
    close(fd);
    return text;
}

// Who has Starling's library as well knows what it does.
OtherLibrary first_other(const std::vector<std::string>& libraries) {
    OtherLibrary other;
    for (const std::string& library : libraries) {
        if (library.starts_with(kOwn)) return {};
        const MpiLibrary mpi = mpi_library(library);
        if (other.name.empty() && *mpi.mpi) other = {mpi.mpi + (" (" + library + ")"), mpi.binary_interface};
    }
    return other;
}

std::vector<std::string> mapped_files(pid_t pid) {
    const std::string text = text_of("/proc/" + std::to_string(pid) + "/maps");
    std::vector<std::string> names;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line(text.data() + at, end - at);
        const size_t slash = line.rfind('/');
        if (slash != std::string_view::npos && (names.empty() || names.back() != line.substr(slash + 1)))
            names.emplace_back(line.substr(slash + 1));
        at = end + 1;
    }
    return names;
}

void add_children(std::vector<pid_t>& processes, size_t of) {
    const std::string pid = std::to_string(processes[of]);
    const std::string text = text_of("/proc/" + pid + "/task/" + pid + "/children");
    int child = 0, used = 0;
    for (const char* at = text.c_str(); std::sscanf(at, "%d%n", &child, &used) == 1; at += used)
        if (processes.size() < kMostProcesses) processes.push_back(child);
}

}  // namespace

MpiLibrary mpi_library(std::string_view file) {
    if (file.starts_with(kOwn)) return {"Starling", "standard"};
    for (const Name& name : kNames)
        if (file.starts_with(name.begin)) return {name.mpi, name.binary_interface};
    return {};
}

OtherLibrary other_library_of(const std::string& path) { return first_other(ElfFile(path).needed()); }

std::string other_library_in(pid_t pid) {
    std::vector<pid_t> processes{pid};
    for (size_t i = 0; i < processes.size(); ++i) {
        if (OtherLibrary other = first_other(mapped_files(processes[i])); !other.name.empty()) return other.name;
        add_children(processes, i);
    }
    return {};
}

}  // namespace starling::launch
