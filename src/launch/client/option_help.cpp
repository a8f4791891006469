#include "launch/client/option_help.h"

namespace starling::launch {

namespace {

constexpr OptionHelp kHelp[] = {
#define OPTION(group, names, values, apply, doc) {OptionGroup::group, names, values, doc},
#include "launch/client/options.def"
#undef OPTION
};

constexpr size_t kTerm = 28, kWidth = 118;

/// Returns a term such as "-n, -np, -c N": short names with one dash, long ones with two.
std::string term_of(const OptionHelp& option) {
    std::string text;
    for_each_name(option.names, [&](std::string_view name) {
        text += std::string(text.empty() ? "" : ", ") + (name.size() > 2 ? "--" : "-") + std::string(name);
    });
    if (!option.values.empty() && option.values[0] != '[') text += ' ';
    return text + std::string(option.values);
}

void add_words(std::string& out, std::string_view words) {
    size_t column = out.size() - (out.rfind('\n') + 1);
    while (!words.empty()) {
        const size_t space = words.find(' ');
        const std::string_view word = words.substr(0, space);
        if (column + 1 + word.size() > kWidth) {
            out.append(1, '\n').append(kTerm - 1, ' ');
            column = kTerm - 1;
        }
        out.append(1, ' ').append(word);
        column += 1 + word.size();
        words.remove_prefix(space == std::string_view::npos ? words.size() : space + 1);
    }
    out += '\n';
}

}  // namespace

std::span<const OptionHelp> option_help() { return kHelp; }

std::string_view title_of(OptionGroup group) {
    switch (group) {
        case OptionGroup::Processes:
            return "Processes";
        case OptionGroup::Hosts:
            return "Hosts (default: this host)";
        case OptionGroup::Environment:
            return "Environment (other hosts get STARLING_..., PATH and LD_LIBRARY_PATH, and the variables named here)";
        case OptionGroup::Output:
            return "Output and control";
        case OptionGroup::NotNeeded:
            break;
    }
    return "Accepted but not needed";
}

std::string_view usage_synopsis() { return "mpiexec [options] program [arguments] [ : [options] program [arguments] ]..."; }

std::string_view usage_remarks() {
    return "Standard input goes to rank 0. The exit code is that of the first process that failed, or 128 + the signal's "
           "number\n"
           "if it was killed. SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP and SIGCONT are passed on; a second "
           "Ctrl-C\n"
           "within 2 s kills the job. After SIGINT, SIGTERM or SIGHUP each process has 30 s to end (STARLING_SIGNAL_GRACE).\n";
}

std::string usage() {
    std::string out = "mpiexec: start an MPI program (or any other) as a job of several processes\n\n  ";
    out.append(usage_synopsis()).append("\n\n");
    auto last = OptionGroup::NotNeeded;
    std::string not_needed;
    for (const OptionHelp& option : kHelp) {
        if (option.group == OptionGroup::NotNeeded) {
            not_needed.append(not_needed.empty() ? " " : ", ").append(term_of(option));
            continue;
        }
        if (option.group != last) out.append(title_of(option.group)).append(1, '\n');
        last = option.group;
        const std::string term = term_of(option);
        out.append("  ").append(term);
        if (term.size() + 3 < kTerm)
            out.append(kTerm - 3 - term.size(), ' ');
        else
            out.append(1, '\n').append(kTerm - 1, ' ');
        add_words(out, option.doc);
    }
    out.append(title_of(OptionGroup::NotNeeded)).append(":").append(not_needed).append("\n\n");
    return out.append(usage_remarks());
}

}  // namespace starling::launch
