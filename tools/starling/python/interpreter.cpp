#include "starling/python/interpreter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "launch/common/text.h"
#include "launch/process/compat.h"
#include "launch/process/elf_file.h"
#include "launch/process/foreign_mpi_check.h"

namespace starling {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLimit{20};  // an interpreter on a slow network file system takes seconds
constexpr size_t kMostOutput = size_t{64} << 10;

// Each line begins with a mark, because start-up files of the interpreter may print lines themselves.
constexpr const char* kQuestion =
    "import sys\n"
    "sys.path = [folder for folder in sys.path if folder]\n"
    "import sysconfig, importlib.util\n"
    "spec = importlib.util.find_spec('mpi4py')\n"
    "folders = list(spec.submodule_search_locations or ()) if spec else []\n"
    "for name, value in (('prefix', sys.prefix), ('packages', sysconfig.get_path('purelib')), ('mpi4py', (folders + "
    "[''])[0])):\n"
    "    print('starling', name, value)\n";

/// A child whose output is read. Its destructor ends the child.
class Child {
  public:
    Child() = default;
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() {
        if (output_ >= 0) close(output_);
        if (pid_ <= 0) return;
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }

    // Returns 0, or the errno of the failed step.
    int start(const std::string& program) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) return errno;
        output_ = ends[0];
        const char* const words[] = {program.c_str(), "-c", kQuestion, nullptr};
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        const int error = posix_spawnp(&pid_, program.c_str(), &actions, nullptr, const_cast<char* const*>(words), environ);
        posix_spawn_file_actions_destroy(&actions);
        close(ends[1]);
        if (error != 0) pid_ = -1;
        return error;
    }

    // Reads until the child closes its output. Returns false if it takes too long or prints too much.
    bool read_all(std::string& out) const {
        for (const auto end = Clock::now() + kLimit; out.size() < kMostOutput;) {
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
            pollfd ready{output_, POLLIN, 0};
            if (left <= 0) return false;
            const int count = poll(&ready, 1, static_cast<int>(left));
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) return false;
            char buffer[4096];
            const ssize_t got = read(output_, buffer, sizeof buffer);
            if (got == 0) return true;
            if (got > 0) out.append(buffer, static_cast<size_t>(got));
        }
        return false;
    }

  private:
    pid_t pid_ = -1;
    int output_ = -1;
};

bool is_module(const std::string& name) { return name.starts_with("MPI.") && name.ends_with(".so"); }

// Returns Starling's library for a binary interface.
std::string library_for(std::string_view interface) {
    if (interface == "mpich") return launch::find_library("compat/mpich/libmpi.so.12");
    if (interface == "openmpi") return launch::find_library("compat/openmpi/libmpi.so.40");
    return launch::find_library("libmpi_abi.so.1");
}

Mpi4py examine_linked(const fs::path& module) {
    const launch::ElfFile file(module);
    for (const std::string& name : file.needed()) {
        const launch::MpiLibrary library = launch::mpi_library(name);
        if (!*library.mpi || !*library.binary_interface) continue;
        const bool found = launch::find_own_library(file, "") == launch::OwnLibrary::found;
        return {found ? Mpi4pyKind::starling : Mpi4pyKind::linked, name, library_for(library.binary_interface)};
    }
    return {};
}

}  // namespace

std::string ask_interpreter(const std::string& program, Interpreter& found) {
    found = {};
    found.program = program;
    const std::string shown = launch::printable(program);
    Child child;
    if (const int error = child.start(program))
        return fmt::format("{} cannot be started: {}; name a Python interpreter", shown, std::strerror(error));
    std::string text;
    if (!child.read_all(text))
        return fmt::format("{} has not answered within {} s; name a Python interpreter", shown, kLimit.count());
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        for (auto& [mark, value] : {std::pair{"starling prefix ", &found.prefix},
                                    {"starling packages ", &found.packages},
                                    {"starling mpi4py ", &found.mpi4py}})
            if (line.starts_with(mark)) *value = line.substr(std::strlen(mark));
    if (found.prefix.empty()) return fmt::format("{} is not a Python 3 interpreter", shown);
    return {};
}

Mpi4py examine_mpi4py(const std::string& folder) {
    bool mpich = false;
    fs::path other;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename();
        if (!is_module(name)) continue;
        // The wheel's modules for single interfaces: MPI.mpiabi.cpython-312-..., MPI.mpich....
        if (name.starts_with("MPI.mpiabi.")) return {Mpi4pyKind::chooses, {}, library_for("standard")};
        if (name.starts_with("MPI.mpich."))
            mpich = true;
        else
            other = entry.path();
    }
    if (mpich) return {Mpi4pyKind::chooses, {}, library_for("mpich")};
    return other.empty() ? Mpi4py() : examine_linked(other);
}

}  // namespace starling
