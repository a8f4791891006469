// mpiexec's command line.
#pragma once

#include <string>
#include <vector>

#include "launch/job.h"

namespace starling::launch {

struct Options {
    std::vector<Program> programs;
    bool tag_output = false;
    bool verbose = false;
    bool quiet = false;
    bool bind_to_core = false;
    int timeout_seconds = 0;
    bool help = false;
    bool version = false;
};

/// Parses by hand: options end at each program's name, one or two dashes are the same, and MPMD repeats the
/// whole with ':' between, none of which a general parser takes to. Returns an empty string, or the
/// sentence that tells what is wrong.
std::string parse_options(const std::vector<std::string>& arguments, Options& out);

/// The text of --help.
const char* usage();

}  // namespace starling::launch
