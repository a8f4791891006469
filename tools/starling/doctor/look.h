// What the loader would do for a program: `starling doctor` reports it. Nothing of the program runs.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace starling {

/// An MPI library that a program would get.
struct LoadedMpi {
    std::string mpi;               ///< "Open MPI"
    std::string binary_interface;  ///< "openmpi"; empty: one that has no shim
    std::string library;           ///< "libmpi.so.40"
    std::string path;              ///< where the loader finds it; empty: nowhere
    std::vector<std::string> by;   ///< from the program on: who needs whom
};

struct Examination {
    std::string file;
    std::string interpreter;                     ///< of a script: this is what was looked at
    std::string problem;                         ///< why nothing could be found out; empty: it could
    std::vector<LoadedMpi> mpis;                 ///< that the program would get by itself
    std::vector<std::string> several;            ///< names of MPIs, where there are more than one
    std::string shim;                            ///< the interface whose shim can stand in; empty: none has to, or can
    std::string in_spite;                        ///< what would be loaded although the shim is in front of it
    std::map<std::string, std::string> lost;     ///< libraries that the loader doesn't find, and who needs them
    std::map<std::string, std::string> absent;   ///< functions that would be in no library, and who calls them
    std::map<std::string, std::string> unbuilt;  ///< functions that answer MPI_ERR_UNSUPPORTED_OPERATION, and who calls them

    bool healthy() const {
        return problem.empty() && several.empty() && in_spite.empty() && lost.empty() && absent.empty() &&
               (mpis.empty() || !shim.empty() || mpis.front().binary_interface == "standard");
    }
};

/// `file`: its path.
Examination examine(const std::string& file);

/// Whether the loader has to do with this file: a program or a library, not a script.
bool for_the_loader(const std::string& file);

}  // namespace starling
