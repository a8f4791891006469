#include "starling/doctor/look.h"

#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "base/library_mark.h"
#include "launch/common/text.h"
#include "launch/process/compat.h"
#include "launch/process/elf_file.h"
#include "launch/process/foreign_mpi_check.h"
#include "starling/functions.h"

namespace starling {

namespace {

namespace fs = std::filesystem;
using launch::ElfFile;

constexpr int kMostInterpreters = 4;  // limit of interpreters in a chain: an interpreter may be a script itself

/// The libraries that the loader would load, from its own output: {name in the file: path, empty if it is not found}.
struct Listing {
    std::map<std::string, std::string> paths;
    std::string complaint;
};

// Parses a line: " name => path (address)", " name => not found" or " path (address)"; any other line is an error message.
void take_line(const std::string& line, Listing& listing) {
    std::istringstream words(line);
    std::string name, arrow, path, more;
    words >> name >> arrow >> path >> more;
    const bool known = !line.empty() && line.front() == '\t';
    if (known && arrow == "=>")
        listing.paths[fs::path(name).is_absolute() ? fs::path(path).filename().string() : name] = path == "not" ? "" : path;
    else if (known && arrow.starts_with("("))
        listing.paths[fs::path(name).filename()] = name;
    else if (listing.complaint.empty())
        listing.complaint = line;
}

bool is_systems_loader(const std::string& path) {
    char real[PATH_MAX];
    struct stat status;
    if (!realpath(path.c_str(), real) || stat(real, &status) != 0) return false;
    const std::string name = fs::path(real).filename(), folder = real;
    return (folder.starts_with("/lib") || folder.starts_with("/usr/lib")) && name.starts_with("ld") &&
           name.find(".so") != std::string::npos && S_ISREG(status.st_mode) && status.st_uid == 0 &&
           (status.st_mode & 022) == 0;
}

// Returns the settings by which mpiexec has the loader replace libraries that the search path does not reach.
std::string audit_variables() {
    const launch::Redirection to = launch::find_redirection();
    if (to.audit.empty()) return {};
    return "STARLING_COMPAT=auto " + (kLibrariesVariable + ("=" + launch::shell_word(to.libraries))) +
           " LD_AUDIT=" + launch::shell_word(to.audit) + " ";
}

// Runs the loader itself for the list, because its search has many sources (tags of files, variables, a cache) and differs between C
// libraries. A file may name any program as its loader, so only the system's loader is run.
//
// `in_front`: a folder that mpiexec would put in front of the search path; empty: the program is examined as it starts without mpiexec.
Listing list(const std::string& file, const std::string& in_front) {
    std::string loader = ElfFile(file).interpreter();
    if (!is_systems_loader(loader)) loader = ElfFile("/proc/self/exe").interpreter();
    std::string command = "LD_TRACE_LOADED_OBJECTS=1 " + launch::shell_word(loader) + " " +
                          launch::shell_word(fs::absolute(file).string()) + " 2>&1";  // a name without '/' is searched for
    if (!in_front.empty())
        command = "LD_LIBRARY_PATH=" + launch::shell_word(in_front) + "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} " +
                  audit_variables() + command;
    Listing listing;
    const std::unique_ptr<FILE, int (*)(FILE*)> from(popen(command.c_str(), "r"), pclose);
    std::string text;
    char buffer[4096];
    while (from && std::fgets(buffer, sizeof buffer, from.get())) text += buffer;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) take_line(line, listing);
    return listing;
}

/// A file that a program would load, with the files that need it. From the dependencies of an MPI library, only libraries of MPI
/// implementations are included.
struct Part {
    std::string name, path;
    std::vector<std::string> by;
};
std::vector<Part> parts_of(const std::string& file, const Listing& listing) {
    std::vector<Part> parts;
    std::set<std::string> seen;
    std::deque<Part> next{{fs::path(file).filename(), file, {}}};
    for (; !next.empty(); next.pop_front()) {
        const Part& part = next.front();
        parts.push_back(part);
        if (part.path.empty()) continue;
        const bool of_mpi = *launch::mpi_library(part.name).mpi;
        std::vector<std::string> by = part.by;
        by.push_back(part.name);
        for (const std::string& name : ElfFile(part.path).needed()) {
            const auto found = listing.paths.find(fs::path(name).filename());
            if (of_mpi && !*launch::mpi_library(name).mpi) continue;
            if (seen.insert(name).second) next.push_back({name, found == listing.paths.end() ? "" : found->second, by});
        }
    }
    return parts;
}

bool is_mpi_name(const std::string& name) {
    for (const char* begin : {"MPI_", "PMPI_", "mpi_", "pmpi_", "ompi_", "MPIR_", "MPIX_"})
        if (name.starts_with(begin)) return true;
    return false;
}

// Converts variants to one name: "mpi_file_open_" and "PMPI_File_open" are MPI_File_open.
std::string canonical(std::string_view symbol) {
    std::string name = launch::lowercase(symbol);
    if (name.starts_with("p")) name.erase(0, 1);
    for (const char* end : {"_f08_", "_f_", "_"})
        if (name.ends_with(end)) return name.substr(0, name.size() - std::string(end).size());
    return name;
}

const std::map<std::string, std::string>& unbuilt_functions() {
    static const auto names = [] {
        std::map<std::string, std::string> out;
        for (const Function& function : functions())
            if (!function.built) out[canonical(function.name)] = function.name;
        return out;
    }();
    return names;
}

void look_at_functions(const std::vector<Part>& parts, Examination& out) {
    std::set<std::string> had;
    std::vector<std::pair<std::string, std::string>> wanted;  // functions that files call, each with the file
    for (const Part& part : parts) {
        if (part.path.empty()) continue;
        ElfFile::Symbols symbols = ElfFile(part.path).symbols();
        for (std::string& name : symbols.had)
            if (is_mpi_name(name)) had.insert(std::move(name));
        if (*launch::mpi_library(part.name).mpi) continue;
        for (std::string& name : symbols.wanted)
            if (is_mpi_name(name)) wanted.emplace_back(std::move(name), part.name);
    }
    for (const auto& [name, by] : wanted) {
        const auto found = unbuilt_functions().find(canonical(name));
        if (!had.contains(name))
            out.absent.emplace(name, by);
        else if (found != unbuilt_functions().end())
            out.unbuilt.emplace(found->second, by);
    }
}

// Examines the program with the shim in front: whether the shim is loaded first, and whether it has the required functions.
void look_through_shim(const std::string& file, Examination& out) {
    const std::string folder = launch::choose_shims(out.shim, {}).library_path;
    const std::vector<Part> parts = parts_of(file, list(file, folder));
    std::error_code ignored;
    for (const Part& part : parts)  // skips libraries of C++ bindings, which have no counterpart in the shim and use the shim
        if (fs::exists(fs::path(folder) / part.name, ignored) && !part.path.starts_with(folder) && out.in_spite.empty())
            out.in_spite = part.path;
    if (out.in_spite.empty()) look_at_functions(parts, out);
}

// Names alone do not tell Starling's library from another vendor's, which has the standard's interface too.
LoadedMpi judge(const Part& part, const launch::MpiLibrary& mpi) {
    LoadedMpi out{mpi.mpi, mpi.binary_interface, part.name, part.path, part.by, false};
    if (out.binary_interface != "standard") return out;
    out.own = !part.path.empty() && launch::is_own_library(ElfFile(part.path));
    if (!out.own) out.mpi = part.path.empty() ? "an MPI with the standard's interface" : "another vendor's MPI";
    return out;
}

void look_at_program(const std::string& file, Examination& out) {
    const ElfFile program(file);
    if (!program.valid()) {
        out.problem = "it is neither a program or library of this machine nor a script";
        return;
    }
    if (program.needed().empty() && program.interpreter().empty()) return;  // no loader handles a static program
    const Listing listing = list(file, "");
    if (listing.paths.empty()) {
        out.problem = "the loader reports: " + listing.complaint;
        return;
    }
    const std::vector<Part> parts = parts_of(file, listing);
    for (const Part& part : parts) {
        const launch::MpiLibrary mpi = launch::mpi_library(part.name);
        if (*mpi.mpi) {
            out.mpis.push_back(judge(part, mpi));
            if (std::find(out.several.begin(), out.several.end(), mpi.mpi) == out.several.end())
                out.several.emplace_back(mpi.mpi);
        } else if (part.path.empty()) {
            out.lost.emplace(part.name, part.by.back());
        }
    }
    if (out.several.size() > 1) return;
    out.several.clear();
    if (out.mpis.empty()) return;
    const std::string interface = out.mpis.front().binary_interface;
    if (interface == "standard") {
        // mpiexec has the processes load Starling's library, whichever the loader finds without it.
        const std::string folder = launch::library_folder();
        look_at_functions(out.mpis.front().own || folder.empty() ? parts : parts_of(file, list(file, folder)), out);
    } else if (!interface.empty()) {
        out.shim = interface;
        look_through_shim(file, out);
    }
}

// Returns the program that a script's first line names, skipping "env".
std::string interpreter_of(const std::string& file) {
    std::ifstream from(file);
    std::string line, word;
    std::getline(from, line);
    if (!line.starts_with("#!")) return {};
    std::istringstream words(line.substr(2));
    words >> word;
    if (fs::path(word).filename() == "env")
        while (words >> word && word.starts_with("-")) {}
    return word;
}

std::string on_path(const std::string& word) {
    if (word.find('/') != std::string::npos) return word;
    const char* path = std::getenv("PATH");
    std::istringstream folders(path ? path : "/usr/bin:/bin");
    std::error_code ignored;
    for (std::string folder; std::getline(folders, folder, ':');)
        if (const fs::path file = fs::path(folder) / word; fs::is_regular_file(file, ignored)) return file;
    return word;
}

}  // namespace

bool for_the_loader(const std::string& file) { return !ElfFile(file).needed().empty(); }

Examination examine(const std::string& word) {
    Examination out;
    out.file = on_path(word);
    std::error_code error;
    if (!fs::is_regular_file(out.file, error)) {
        out.problem = "there is no such file";
        return out;
    }
    std::string file = out.file;
    for (int steps = 0; steps < kMostInterpreters; ++steps) {
        const std::string interpreter = interpreter_of(file);
        if (interpreter.empty()) break;
        file = out.interpreter = on_path(interpreter);
    }
    look_at_program(file, out);
    return out;
}

}  // namespace starling
