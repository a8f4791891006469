// `starling info`: prints properties of this installation.
#pragma once

namespace starling {

/// The parts to print. If none is set, prints all parts, but only the numbers of functions.
struct InfoOptions {
    bool variables = false, missing = false, functions = false, transports = false, collectives = false;
    bool counters = false, protocols = false;
    bool json = false;
};

/// Prints to standard output. Returns the exit code.
int info(const InfoOptions& options);

}  // namespace starling
