// How a job's daemons come about: by mpiexec alone, through an agent, or because they are there already.
#pragma once

#include <string>

#include "launch/options.h"

namespace starling::launch {

struct Choice {
    Way way = Way::direct;
    std::string why;      ///< for --verbose
    std::string problem;  ///< not empty: the job can't be started the way that was asked for
};

/// The fastest way that can serve the job. Hosts that are all this machine need nothing but mpiexec.
Choice choose_way(const Options& options);

}  // namespace starling::launch
