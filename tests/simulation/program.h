// Runs an unchanged MPI program in the simulated world: each rank has a copy of the program, bound to its copy of the library. A cost file
// determines the times, so the run predicts those of the described machine. Equal arguments give exactly equal runs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace starling::simulation {

/// A run, as the command line describes it.
struct ProgramRun {
    std::string library;
    std::string program;  ///< file of the program, a shared object
    std::string costs;    ///< file with the prices
    std::string plan;     ///< file with a plan for the job; empty: none
    std::string report;   ///< file for the results, JSON; empty: none
    uint32_t ranks = 1, hosts = 1;
    uint64_t seed = 1;
    uint64_t limit_s = 300;  ///< simulated seconds after which the run fails
    bool trace = false;
    std::vector<std::pair<std::string, std::string>> environment;
    std::vector<std::string> arguments;  ///< of the program, without its name
};

/// Returns the file of a program: a path, or the name of one that was built for the simulator. Empty: there is none.
std::string find_program(const std::string& name);

/// Reads the command line of `simulate --program`. Exits after an error or a request for help.
ProgramRun read_program_run(int count, char** arguments);

/// Runs the program and prints the results. Returns the exit code: that of the first rank whose code is not 0.
int run_program(const ProgramRun& run);

}  // namespace starling::simulation
