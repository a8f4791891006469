// `starling doctor`: reports which MPI libraries a program would load, whether Starling can replace them, and what to do.
#pragma once

#include <string>
#include <vector>

namespace starling {

struct DoctorOptions {
    std::vector<std::string> files;  ///< programs, libraries, or folders with such files
    bool json = false;
};

/// Examines and reports the files. Returns the exit code: 1 if a program would not work, 2 if there is no file to examine.
int run_doctor(const DoctorOptions& options);

}  // namespace starling
