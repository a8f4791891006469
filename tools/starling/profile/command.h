// `starling profile`: analyzes earlier runs, and plans later ones from them.
#pragma once

#include <CLI/App.hpp>

namespace starling {

/// Adds the subcommand and its own subcommands; `result` receives the exit code.
void add_profile_command(CLI::App& app, int& result);

}  // namespace starling
