#include "starling/doctor/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "starling/doctor/look.h"

namespace starling {

namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr size_t kNamed = 6;  // number of functions that are listed by name

std::string names(const std::map<std::string, std::string>& which) {
    std::vector<std::string> words;
    for (const auto& [name, by] : which) {
        if (words.size() == kNamed) break;
        words.push_back(fmt::format("{} ({})", name, by));
    }
    const size_t more = which.size() - words.size();
    return fmt::format("{}{}", fmt::join(words, ", "), more ? fmt::format(" and {} more (--json has all)", more) : "");
}

void say_mpis(const Examination& found) {
    for (const LoadedMpi& mpi : found.mpis)
        fmt::print("    {} {}, for {}: {}\n", mpi.mpi, mpi.library, fmt::join(mpi.by, " > "),
                   mpi.path.empty() ? "not found" : mpi.path);
}

void say_troubles(const Examination& found) {
    for (const auto& [library, by] : found.lost)
        fmt::print("  {} is not found, which {} needs: install it, or add its folder to LD_LIBRARY_PATH\n", library, by);
    if (!found.absent.empty()) fmt::print("  calls functions that Starling does not have: {}\n", names(found.absent));
    if (!found.unbuilt.empty())
        fmt::print("  calls functions that are not implemented and return MPI_ERR_UNSUPPORTED_OPERATION: {}\n",
                   names(found.unbuilt));
}

const char* remedy_for(const Examination& found) {
    return found.in_spite.empty()
               ? ""
               : "the file's RPATH names that folder and takes precedence: remove it with patchelf --remove-rpath";
}

// Describes a program of the standard's interface, for which any library named libmpi_abi.so.1 can be loaded.
void say_standard(const Examination& found, const std::string& start) {
    const LoadedMpi& mpi = found.mpis.front();
    fmt::print("  is made for the standard's binary interface, which is Starling's own:\n");
    say_mpis(found);
    if (mpi.own)
        fmt::print("  start it by: mpiexec -n 4 {}\n", start);
    else if (mpi.path.empty())
        fmt::print("  mpiexec has it load Starling's library, which the loader does not find without it: mpiexec -n 4 {}\n",
                   start);
    else
        fmt::print("  that file is not Starling's; mpiexec has it load Starling's instead: mpiexec -n 4 {}\n", start);
}

// Prints the MPI libraries that a program is linked with, and what the user can do about them.
void say_verdict(const Examination& found) {
    const bool library = found.interpreter.empty() && fs::path(found.file).filename().string().find(".so") != std::string::npos;
    const std::string start = library ? "the program that loads it" : found.file;
    if (!found.several.empty()) {
        fmt::print("  would get {} MPIs into one process, which can't work:\n", found.several.size());
        say_mpis(found);
        fmt::print("  rebuild it, or install the library named last in a line, so that all are of one MPI\n");
    } else if (found.mpis.empty()) {
        fmt::print(
            "  is not linked with an MPI. If it loads one at run time (as interpreters do), examine that file or its folder;\n"
            "  whichever MPI it loads, Starling replaces it: mpiexec -n 4 {}\n",
            start);
    } else if (found.mpis.front().binary_interface == "standard") {
        say_standard(found, start);
    } else if (found.shim.empty()) {
        fmt::print("  is linked with an MPI whose interface Starling has no shim for: compile it with Starling's mpicc\n");
        say_mpis(found);
    } else {
        fmt::print("  is linked with another MPI:\n");
        say_mpis(found);
        if (found.in_spite.empty())
            fmt::print("  Starling replaces it: mpiexec -n 4 {}\n", start);
        else
            fmt::print("  {} would be loaded under mpiexec, too: {}\n", found.in_spite, remedy_for(found));
    }
}

void say(const Examination& found) {
    fmt::print("{}\n", found.file);
    if (!found.problem.empty()) {
        fmt::print("  {}\n", found.problem);
        return;
    }
    if (!found.interpreter.empty()) fmt::print("  is a script for {}, which\n", found.interpreter);
    say_verdict(found);
    say_troubles(found);
}

OrderedJson as_json(const Examination& found) {
    OrderedJson out{{"file", found.file}, {"healthy", found.healthy()}};
    if (!found.interpreter.empty()) out["interpreter"] = found.interpreter;
    if (!found.problem.empty()) out["problem"] = found.problem;
    out["mpi"] = OrderedJson::array();
    for (const LoadedMpi& mpi : found.mpis)
        out["mpi"].push_back({{"name", mpi.mpi},
                              {"interface", mpi.binary_interface},
                              {"library", mpi.library},
                              {"path", mpi.path},
                              {"own", mpi.own},
                              {"by", mpi.by}});
    out["several"] = found.several;
    out["compat"] = found.shim;
    out["in_spite"] = found.in_spite;
    out["not_found"] = found.lost;
    out["absent"] = found.absent;
    out["unbuilt"] = found.unbuilt;
    return out;
}

// Returns all programs and libraries in a folder and its subfolders, sorted by name.
std::vector<std::string> files_in(const std::string& folder) {
    std::vector<std::string> files;
    std::error_code error;
    for (fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error), end; at != end;
         at.increment(error))
        if (at->is_regular_file(error) && for_the_loader(at->path())) files.push_back(at->path());
    std::sort(files.begin(), files.end());
    return files;
}

std::vector<Examination> examine_all(const std::vector<std::string>& words) {
    std::vector<Examination> all;
    std::error_code error;
    for (const std::string& word : words) {
        if (!fs::is_directory(word, error)) {
            all.push_back(examine(word));
            continue;
        }
        // Report only relevant files: most libraries in a folder do not use MPI.
        for (const std::string& file : files_in(word))
            if (Examination found = examine(file); !found.mpis.empty() || !found.healthy()) all.push_back(std::move(found));
    }
    return all;
}

}  // namespace

int run_doctor(const DoctorOptions& options) {
    const std::vector<Examination> all = examine_all(options.files);
    OrderedJson list = OrderedJson::array();
    bool healthy = true;
    for (const Examination& found : all) {
        healthy = healthy && found.healthy();
        if (options.json)
            list.push_back(as_json(found));
        else
            say(found);
    }
    if (options.json) fmt::print("{}\n", list.dump(2, ' ', false, OrderedJson::error_handler_t::replace));
    if (all.empty()) {
        if (!options.json) fmt::print("nothing there is linked with an MPI\n");
        return 2;
    }
    return healthy ? 0 : 1;
}

}  // namespace starling
