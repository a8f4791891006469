#include "launch/process/foreign_mpi_check.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "launch/common/file_text.h"
#include "launch/process/compat.h"

namespace starling::launch {

namespace {

/// Loader names of MPI libraries; further digits after a complete number do not match. Libraries that no shim can replace have an empty
/// interface.
struct LibraryName {
    std::string_view begin;
    const char* mpi;
    const char* binary_interface;
};
constexpr LibraryName kNames[] = {
    {"libmpi.so.12", "MPICH, Intel MPI or MVAPICH", "mpich"},
    {"libmpifort.so.12", "MPICH, Intel MPI or MVAPICH", "mpich"},
    {"libmpicxx.so.12", "MPICH, Intel MPI or MVAPICH", "mpich"},
    {"libmpich.so.12", "MPICH", "mpich"},
    {"libmpichfort.so.12", "MPICH", "mpich"},
    {"libmpichcxx.so.12", "MPICH", "mpich"},
    {"libmpich", "MPICH older than 3.1", ""},
    {"libfmpich", "MPICH older than 3.1", ""},
    {"libmpi_cray.so.", "Cray MPICH", ""},
    {"libmpi_gnu_", "Cray MPICH", ""},
    {"libmpi.so.40", "Open MPI", "openmpi"},
    {"libmpi_mpifh.so.40", "Open MPI", "openmpi"},
    {"libmpi_usempi_ignore_tkr.so.40", "Open MPI", "openmpi"},
    {"libmpi_usempif08.so.40", "Open MPI", "openmpi"},
    {"libmpi_cxx.so.40", "Open MPI", "openmpi"},
    {"libmpi.so.", "an MPI that is neither MPICH of 3.1 to 5 nor Open MPI 4 or 5", ""},
    {"libmpi_mpifh.so.", "Open MPI of another series than 4 and 5", ""},
    {"libmpi_usempi", "Open MPI of another series than 4 and 5", ""},
    {"libmpi_cxx.so.", "Open MPI of another series than 4 and 5", ""},
    {"libmpi_ibm", "IBM Spectrum MPI", ""},
    {"libpcmpi.so", "Platform MPI", ""},
    {"libmpi_mt.so.", "Intel MPI older than 5", ""},
};
constexpr std::string_view kOwn = "libmpi_abi.so.";

constexpr int kMostProcesses = 64;  // checked among the descendants of a wrapper

// Returns whether a file name matches: libmpi.so.120 is not libmpi.so.12, but libmpi.so.12.1 is.
bool is_called(std::string_view file, std::string_view begin) {
    if (!file.starts_with(begin)) return false;
    const std::string_view rest = file.substr(begin.size());
    return rest.empty() || rest[0] == '.' || begin.back() < '0' || begin.back() > '9';
}

// A program that is linked with Starling's library as well is accepted. A running process's library is judged by its content, because a
// shim has another MPI's name, and is there before the library that it loads. `root` is the process's root folder, which differs from this
// process's in a container. A libmpi_abi.so.1 that cannot be read is accepted.
OtherLibrary first_other(const std::vector<std::string>& libraries, const std::string& root) {
    OtherLibrary other;
    for (const std::string& path : libraries) {
        const std::string library = path.substr(path.rfind('/') + 1);
        const MpiLibrary mpi = mpi_library(library);
        if (!*mpi.mpi) continue;
        const bool has_own_name = library.starts_with(kOwn);
        if (root.empty() && has_own_name) return {};
        if (!root.empty()) {
            const ElfFile file(root + path);
            if (file.valid() ? is_own_library(file) : has_own_name) return {};
        }
        if (has_own_name)
            other = {"another vendor's library for the standard's interface (" + path + ")", "standard"};
        else if (other.name.empty())
            other = {mpi.mpi + (" (" + library + ")"), mpi.binary_interface};
    }
    return other;
}

std::vector<std::string> mapped_files(pid_t pid) {
    const std::string text = text_of_file("/proc/" + std::to_string(find_shown_id(pid)) + "/maps");
    std::vector<std::string> names;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line(text.data() + at, end - at);
        const size_t slash = line.find('/');
        if (slash != std::string_view::npos && (names.empty() || names.back() != line.substr(slash)))
            names.emplace_back(line.substr(slash));
        at = end + 1;
    }
    return names;
}

void add_children(std::vector<pid_t>& processes, size_t of) {
    const std::string pid = std::to_string(processes[of]);
    const std::string text = text_of_file("/proc/" + pid + "/task/" + pid + "/children");
    int child = 0, used = 0;
    for (const char* at = text.c_str(); std::sscanf(at, "%d%n", &child, &used) == 1; at += used)
        if (processes.size() < kMostProcesses) processes.push_back(child);
}

}  // namespace

MpiLibrary mpi_library(std::string_view file) {
    if (file.starts_with(kOwn)) return {"Starling", "standard"};
    for (const LibraryName& name : kNames)
        if (is_called(file, name.begin)) return {name.mpi, name.binary_interface};
    return {};
}

OtherLibrary other_library_of(const ElfFile& program) { return first_other(program.needed(), ""); }

std::string other_library_in(pid_t pid) {
    std::vector<pid_t> processes{pid};
    for (size_t i = 0; i < processes.size(); ++i) {
        const OtherLibrary other =
            first_other(mapped_files(processes[i]), "/proc/" + std::to_string(find_shown_id(processes[i])) + "/root");
        if (!other.name.empty()) return other.name;
        add_children(processes, i);
    }
    return {};
}

}  // namespace starling::launch
