#include "launch/client/options.h"

#include "base/config.h"

namespace starling::launch {

JobSpec Options::spec() const {
    JobSpec spec;
    spec.programs = programs;
    spec.forward_input = debugged.empty();  // a debugger reads the terminal
    spec.input = input;
    spec.recovers = recovers;
    spec.encrypts = config().encryption;
    spec.plan = plan;
    spec.universe_size = universe_size;
    return spec;
}

JobStyle Options::style() const {
    JobStyle style;
    style.tag_output = tag_output;
    style.output = output;
    style.binding = binding;
    style.report_bindings = report_bindings;
    style.display_map = display_map;
    return style;
}

std::string Options::with_start_hint(const std::string& reason, size_t command) const {
    return command < programs.size() && programs[command].command() == hinted_program ? reason + start_hint : reason;
}

}  // namespace starling::launch
