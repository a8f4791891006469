// Options on environment variables, and others that set some.
#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/config.h"
#include "base/error.h"
#include "launch/client/option_help.h"
#include "launch/client/option_parser.h"
#include "launch/process/compat.h"

extern char** environ;

namespace starling::launch {

namespace {

void export_named(std::string_view names, std::vector<std::pair<std::string, std::string>>& out) {
    for_each_name(names, [&](std::string_view next) {
        const std::string name(next);
        if (const char* value = std::getenv(name.c_str())) out.emplace_back(name, value);
    });
}

}  // namespace

void OptionParser::export_variable(const Given& given) {
    const std::string& text = given.value;
    const size_t equals = text.find('=');
    if (equals == 0 || text.empty()) {
        error_ = "'-x " + text + "' names no variable";
    } else if (equals != std::string::npos) {
        global_.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    } else if (const char* value = std::getenv(text.c_str())) {
        global_.emplace_back(text, value);
    } else {
        // Job scripts list variables that are set on some machines only; Open MPI warns as well.
        out_.notes.push_back("'-x " + text + "' is ignored: the environment has no such variable; -x " + text +
                             "=VALUE sets it");
    }
}

void OptionParser::export_list(const Given& given) {
    forward_ = Forward::none;
    export_named(given.value, global_);
}

void OptionParser::export_list_here(const Given& given) {
    program_forward_ = Forward::none;
    export_named(given.value, program_.environment);
}

// Passes on every other variable explicitly.
void OptionParser::export_others(const Given& given) {
    forward_ = Forward::none;
    const std::string_view option = given.option;
    Variables& out = option.ends_with("genvexcl") ? global_ : program_.environment;
    if (&out != &global_) {
        forward_ = Forward::usual;
        program_forward_ = Forward::none;
    }
    for (char** entry = environ; *entry; ++entry) {
        const std::string_view variable = *entry;
        const std::string_view name = variable.substr(0, variable.find('='));
        const bool excluded = name.size() == variable.size() || has_name(given.value, name);
        if (!excluded) out.emplace_back(name, variable.substr(name.size() + 1));
    }
}

void OptionParser::set_variable(const Given& given) {
    const std::string& text = given.value;
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
        error_ = "'--set " + text + "' is not NAME=VALUE";
        return;
    }
    std::string name = text.substr(0, equals);
    for (char& c : name) c = c == '-' || c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (!name.starts_with("STARLING_")) name.insert(0, "STARLING_");
    const std::string value = text.substr(equals + 1);
    if (check_setting(name.c_str(), value.c_str()) != 0)
        error_ = "'--set " + text + "' is refused: " + std::string(failure_text());
    global_.emplace_back(name, value);
    // Variables that mpiexec sets for the ranks are not its own: with them it would take itself for a rank.
    const Variable* variable = find_variable(name.c_str());
    if (variable && variable->type == VariableType::reserved && name != "STARLING_UNIVERSE") return;
    out_.settings.emplace_back(name, value);
}

void OptionParser::stand_in(const Given& given) {
    if (!is_compat(given.value)) error_ = "'" + given.option + " " + given.value + "' is neither auto, mpich, openmpi nor off";
    global_.emplace(global_.begin(), "STARLING_COMPAT", given.value);
}

// `auto` is put in front like a plan's variables, so that -x STARLING_PLAN=... takes precedence. A file of that name is ./auto.
void OptionParser::take_plan(const Given& given) {
    const bool automatic = given.value == "auto";
    plan_path_ = automatic ? std::string() : given.value;
    std::erase(global_, std::pair<std::string, std::string>("STARLING_PLAN", "auto"));
    if (automatic) global_.emplace(global_.begin(), "STARLING_PLAN", "auto");
}

// A command's own, as its info key in MPI_Comm_spawn_multiple is.
void OptionParser::read_errhandler(const Given& given) {
    constexpr char kVariable[] = "STARLING_INITIAL_ERRHANDLER";
    if (check_setting(kVariable, given.value.c_str()) != 0)
        error_ = "'" + given.option + " " + given.value +
                 "' names no error handler; use mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return";
    program_.environment.emplace_back(kVariable, given.value);
}

void OptionParser::write_profile(const Given& given) {
    out_.profile = true;
    out_.profile_file = given.value;
    global_.emplace_back("STARLING_PROFILE", "on");
}

}  // namespace starling::launch
