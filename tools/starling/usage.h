// Starling's command line: which commands it shows, and its errors, in mpiexec's manner: one line with the wrong word, the name that was
// probably meant, and where the valid ones are listed.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

namespace starling {

/// The exit code for a command line that starling does not understand (docs/exit-codes.md).
inline constexpr int kWrongUsage = 2;

/// Returns the subcommands that help and suggestions name, without those that only Starling's own programs call.
std::vector<const CLI::App*> shown_commands(const CLI::App& command);

/// Prints the help or version that the command line asks for, or one line on standard error that describes its error. `error` was thrown by
/// app.parse(). Returns the exit code.
int end_of_parsing(const CLI::App& app, const CLI::ParseError& error);

/// Writes what standard output holds back. Returns `result`; if the output is lost, as on a full disk, prints why and returns a failure.
int end_of_output(int result);

}  // namespace starling
