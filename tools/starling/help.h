// `starling help`: prints topics, and the pages of all functions, as plain text.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace starling {

/// Prints the page of `topic`: a topic, a command, a function or a variable; the table of contents if it is empty. `app` is starling's own.
/// Returns the exit code.
int print_help(const CLI::App& app, const std::string& topic);

/// Prints the tables of commands and options as JSON, the source of manual pages and shell completion.
int print_tables(const CLI::App& app);

}  // namespace starling
