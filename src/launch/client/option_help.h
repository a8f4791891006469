// Names and descriptions of mpiexec's options, for --help, the manual page and the completion of shells.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace starling::launch {

enum class OptionGroup { Processes, Hosts, Environment, Output, NotNeeded };

/// One option of mpiexec: a row of options.def.
struct OptionHelp {
    OptionGroup group;
    std::string_view names, values, doc;
};

std::span<const OptionHelp> option_help();

/// Calls `use` with each name of a comma-separated list.
template <class Use>
void for_each_name(std::string_view names, Use use) {
    while (!names.empty()) {
        const size_t comma = names.find(',');
        use(names.substr(0, comma));
        names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
    }
}

/// Returns whether a comma-separated list has this name.
inline bool has_name(std::string_view names, std::string_view name) {
    bool found = false;
    for_each_name(names, [&](std::string_view one) { found |= one == name; });
    return found;
}

/// Returns a title such as "Hosts (default: this host)".
std::string_view title_of(OptionGroup group);

/// Return the text around the options: the form of a command line, and the rules for input, exit codes and signals.
std::string_view usage_synopsis();
std::string_view usage_remarks();

/// Returns the text of --help.
std::string usage();

}  // namespace starling::launch
