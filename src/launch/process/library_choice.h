// Decides which libraries the processes of a program load, so that programs of any MPI run on Starling as one job.
#pragma once

#include <string>

#include "launch/process/process_environment.h"
#include "launch/process/rank_variables.h"

namespace starling::launch {

/// Returns whether each process may run alone, with its own MPI (STARLING_SINGLETON=allow).
bool allows_singletons(const ProcessEnvironment& environment);

/// A program that is about to start.
struct StartedProgram {
    std::string name;    ///< as the user wrote it
    std::string path;    ///< path of its file; empty: not found
    bool alone = false;  ///< whether the job has only this process, and no parent
};

struct LibraryChoice {
    std::string problem;   ///< reason why the processes could not communicate, as a sentence; empty: they can
    ForeignNames names{};  ///< variables of another MPI's launcher that the processes get
};

/// Changes the environment so that the program's processes load Starling's libraries in place of other MPIs'.
LibraryChoice choose_libraries(const StartedProgram& program, ProcessEnvironment& environment);

}  // namespace starling::launch
