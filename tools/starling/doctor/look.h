// Finds out what the loader would do for a program, for `starling doctor`. No code of the program runs.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace starling {

/// An MPI library that a program would load.
struct LoadedMpi {
    std::string mpi;               ///< "Open MPI"
    std::string binary_interface;  ///< "openmpi"; empty: one that has no shim
    std::string library;           ///< "libmpi.so.40"
    std::string path;              ///< path where the loader finds it; empty: not found
    std::vector<std::string> by;   ///< chain of dependencies, starting at the program
    bool own = false;              ///< whether the file is Starling's library, by its content
};

struct Examination {
    std::string file;
    std::string interpreter;           ///< interpreter that was examined in place of a script; empty: the file is not a script
    std::string problem;               ///< why the examination failed; empty: it succeeded
    std::vector<LoadedMpi> mpis;       ///< MPI libraries that the program would load without a shim
    std::vector<std::string> several;  ///< names of the MPIs, if the program would load more than one
    std::string shim;                  ///< interface of the shim that can replace the library; empty: not needed, or none
    std::string in_spite;              ///< library that would be loaded despite the shim
    std::map<std::string, std::string> lost;     ///< libraries that the loader does not find, with the file that needs each
    std::map<std::string, std::string> absent;   ///< functions that no loaded library has, with the file that calls each
    std::map<std::string, std::string> unbuilt;  ///< functions that return MPI_ERR_UNSUPPORTED_OPERATION, with a caller of each

    bool healthy() const {
        return problem.empty() && several.empty() && in_spite.empty() && lost.empty() && absent.empty() &&
               (mpis.empty() || !shim.empty() || mpis.front().binary_interface == "standard");
    }
};

/// Examines a file. `file`: its path, or the name of a program in PATH.
Examination examine(const std::string& file);

/// Returns whether the loader handles this file: a program or a library, not a script.
bool for_the_loader(const std::string& file);

}  // namespace starling
