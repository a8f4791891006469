// `starling help`: topics, and the pages of all functions, as plain text.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace starling {

/// Prints what is known of `topic`: a topic, a command, a function or a variable; what there is if it is empty. `app` is starling's own.
/// Returns the exit code.
int print_help(const CLI::App& app, const std::string& topic);

/// Prints the commands' and options' tables as JSON: what manual pages and completion are made of.
int print_tables(const CLI::App& app);

}  // namespace starling
