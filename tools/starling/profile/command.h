// `starling profile`: looks at what runs have done, and plans later ones by it.
#pragma once

#include <CLI/App.hpp>

namespace starling {

/// Adds the subcommand with its own; `result` gets the exit code.
void add_profile_command(CLI::App& app, int& result);

}  // namespace starling
