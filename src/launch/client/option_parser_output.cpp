// Options on input and output, time and debuggers.
#include <climits>

#include "launch/client/debug_session.h"
#include "launch/client/option_help.h"
#include "launch/client/option_parser.h"
#include "launch/common/text.h"

namespace starling::launch {

// Open MPI's list of what to print.
void OptionParser::display(const Given& given) {
    for_each_name(given.value, [&](std::string_view word) {
        if (word == "map" || word == "allocation" || word == "map-devel") {
            out_.display_map = true;
        } else if (word == "bind" || word == "bindings") {
            out_.report_bindings = true;
        } else {
            out_.notes.push_back("'" + std::string(word) + "' in '" + given.option + " " + given.value +
                                 "' is ignored; mpiexec displays map and bind");
        }
    });
}

void OptionParser::read_output_directory(const Given& given) {
    explain(given, launch::read_output_directory(given.value, out_.output));
}

void OptionParser::read_output(const Given& given) {
    error_ = read_output_words(given.value, out_.output, out_.tag_output, out_.notes);
}

void OptionParser::read_prefix(const Given& given) {
    out_.output.prefix = given.value;
    explain(given, check_pattern(given.value));
}

void OptionParser::explain(const Given& given, const std::string& problem) {
    if (!problem.empty()) error_ = "'" + given.option + " " + given.value + "': " + problem;
}

void OptionParser::read_input(const Given& given) {
    if (!read_input_ranks(given.value, out_.input))
        error_ = "'" + given.option + " " + given.value + "' names no ranks; use a rank, all, none, or ranks such as 0,2-4";
}

void OptionParser::read_timeout(const Given& given) {
    uint32_t seconds = 0;
    if (!read_number(given.value, seconds) || seconds == 0 || seconds > INT_MAX / 1000) {
        error_ = "'" + given.option + " " + given.value + "' is not a number of seconds";
    }
    out_.timeout_seconds = static_cast<int>(seconds);
}

// Open MPI's form of --enable-recovery.
void OptionParser::read_fault_tolerance(const Given& given) {
    out_.recovers = given.value == "ulfm" || given.value == "mpi";
    if (!out_.recovers && given.value != "no" && given.value != "none")
        error_ = "'" + given.option + " " + given.value + "' is not a kind of fault tolerance; use ulfm or none";
}

void OptionParser::choose_debugged(const Given& given) {
    if (!parse_debugged(given.value.empty() ? "0" : given.value, out_.debugged))
        error_ = "'" + given.option + "' is not a list of ranks, such as --debug=0,3";
}

}  // namespace starling::launch
