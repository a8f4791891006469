// `starling doctor`: which MPIs a program would load, whether Starling can stand in for them, and what to do.
#pragma once

#include <string>
#include <vector>

namespace starling {

struct DoctorOptions {
    std::vector<std::string> files;  ///< programs, libraries, or folders of them
    bool json = false;
};

/// Looks and reports; gives the exit code: 1 if something would go wrong, 2 if there is nothing to look at.
int run_doctor(const DoctorOptions& options);

}  // namespace starling
