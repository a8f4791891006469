// `starling info`: prints properties of this installation, by default in a summary (summary.h).
#pragma once

namespace starling {

/// The parts to print. If none is set, prints the summary; JSON then has all parts, but only the numbers of functions.
struct InfoOptions {
    bool variables = false, missing = false, functions = false, transports = false, collectives = false;
    bool counters = false, protocols = false;
    bool copies = false;  ///< not among all parts, because it measures for seconds
    bool all = false;     ///< all parts, but only the numbers of functions
    bool json = false;
};

/// Prints to standard output. Returns the exit code.
int info(const InfoOptions& options);

}  // namespace starling
