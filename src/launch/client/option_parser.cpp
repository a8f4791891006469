#include "launch/client/option_parser.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "launch/client/config_file.h"
#include "launch/client/option_help.h"
#include "launch/client/plan_file.h"
#include "launch/client/rank_file.h"
#include "launch/common/nearest_name.h"
#include "launch/common/text.h"

namespace starling::launch {

namespace {

constexpr int count_values(std::string_view values) {
    if (values.empty()) return 0;
    if (values[0] == '[') return -1;
    return 1 + static_cast<int>(std::count(values.begin(), values.end(), ' '));
}

}  // namespace

const OptionParser::Option OptionParser::kOptions[] = {
#define OPTION(group, names, values, apply, doc) {names, count_values(values), &OptionParser::apply},
#include "launch/client/options.def"
#undef OPTION
};

const OptionParser::Option* OptionParser::find(std::string_view name) {
    const auto found = std::find_if(std::begin(kOptions), std::end(kOptions),
                                    [&](const Option& option) { return has_name(option.names, name); });
    return found == std::end(kOptions) ? nullptr : found;
}

std::string OptionParser::unknown_option(std::string_view given, std::string_view name) {
    std::vector<std::string_view> known;
    for (const Option& option : kOptions) for_each_name(option.names, [&](std::string_view one) { known.push_back(one); });
    std::string meant(nearest_name(name, known));
    if (!meant.empty()) meant.insert(0, meant.size() > 1 ? "--" : "-");
    const size_t digits = std::min(name.find_first_of("0123456789"), name.size());
    if (digits < name.size() && find(name.substr(0, digits)))  // -n4
        meant = std::string(given.substr(0, given.size() - name.size() + digits)) + " " + std::string(name.substr(digits));
    return "unknown option '" + std::string(given) + "'" + (meant.empty() ? "" : "; did you mean '" + meant + "'?") +
           " (mpiexec --help lists all)";
}

std::string OptionParser::run() {
    while (next_ < arguments_.size() && error_.empty()) section();
    if (error_.empty() && !out_.help && !out_.version && out_.programs.empty()) {
        error_ = "no program given; try: mpiexec -n 4 ./program";
    }
    if (error_.empty()) finish();
    return error_;
}

// Parses one command of the MPMD list: options, program, its arguments, up to ':' or the end.
void OptionParser::section() {
    program_ = Program{};
    program_forward_.reset();
    counted_ = false;
    bare_hosts_.clear();
    without_value_.clear();
    while (next_ < arguments_.size() && error_.empty()) {
        const std::string& argument = arguments_[next_];
        if (argument.size() < 2 || argument[0] != '-') break;
        ++next_;
        without_value_.clear();
        if (argument == "--") break;
        option(argument);
        if (out_.help || out_.version) {
            next_ = arguments_.size();
            return;
        }
    }
    if (!error_.empty()) return;
    while (next_ < arguments_.size() && arguments_[next_] != ":") program_.argv.push_back(arguments_[next_++]);
    const bool more = next_ < arguments_.size();
    ++next_;
    if (program_.argv.empty() || program_.argv[0].empty() || (more && next_ >= arguments_.size())) {
        error_ = more || !out_.programs.empty() ? "a program is missing before or after ':'"
                                                : "no program given; try: mpiexec -n 4 ./program";
        return;
    }
    if (!without_value_.empty()) {
        out_.hinted_program = program_.argv[0];
        out_.start_hint = "; '" + without_value_ + "' takes a value only as '" + without_value_ + "=VALUE', so '" +
                          out_.hinted_program + "' was taken as the program";
    }
    any_counted_ |= counted_;
    if (!counted_) leave_count_open();
    program_.appnum = static_cast<int32_t>(out_.programs.size());
    out_.programs.push_back(std::move(program_));
    forwards_.push_back(program_forward_);
}

// Leaves the number of processes to the root, which knows the hosts. A host that --host names without a number has one process then,
// as with other MPIs; a host of a hostfile has one per core.
void OptionParser::leave_count_open() {
    program_.uncounted = true;
    if (program_.per_host > 0) return;
    for (HostSlots& host : program_.hosts)
        if (host.slots == 0 && bare_hosts_.contains(lowercase(host.name))) host.slots = 1;
}

void OptionParser::option(const std::string& given) {
    std::string_view name = given;
    name.remove_prefix(name[1] == '-' ? 2 : 1);
    std::string_view attached;
    bool has_attached = false;
    if (const size_t equals = name.find('='); equals != std::string_view::npos) {
        attached = name.substr(equals + 1);
        name = name.substr(0, equals);
        has_attached = true;
    }
    const Option* found = find(name);
    if (!found) return peer_option(given, name, has_attached ? &attached : nullptr);
    if (const SharedName* shared = find_shared_name(name); shared && shared->says) say_meaning(given, *shared);
    std::array<std::string, 2> values;
    if (found->values == kAttached) {
        if (!has_attached) without_value_ = given;
        values[0] = attached;
        if (has_attached && attached.empty()) error_ = "option '" + given + "' has an empty value";
        has_attached = false;
    }
    for (int i = 0; i < found->values; ++i) {
        std::string& first = values[0];
        if (has_attached) {
            values[static_cast<size_t>(i)] = attached;
            has_attached = false;
        } else if (i == 1 && found->names.ends_with("env") && first.find('=', 1) != std::string::npos) {
            values[1] = first.substr(first.find('=') + 1);  // the one-word form: -genv NAME=VALUE
            first.resize(first.find('='));
        } else if (next_ < arguments_.size()) {
            values[static_cast<size_t>(i)] = arguments_[next_++];
        } else {
            error_ = "option '" + given + "' needs " + (found->values == 2 ? "two values" : "a value");
            return;
        }
    }
    if (has_attached) {
        error_ = "option '" + given + "' takes no value";
        return;
    }
    (this->*found->apply)({given, values[0], values[1]});
}

void OptionParser::say_meaning(const std::string& given, const SharedName& shared) {
    std::string& note = out_.notes.emplace_back("'" + given + "' is taken as " + std::string(shared.taken) + "; ");
    note.append(shared.others);
}

// Handles an option of another launcher, as the table of such options says.
void OptionParser::peer_option(const std::string& given, std::string_view name, const std::string_view* attached) {
    const PeerOption* peer = find_peer_option(name);
    if (!peer || peer->answer == PeerAnswer::done) {
        error_ = unknown_option(given, name);
        return;
    }
    if (peer->answer == PeerAnswer::counterpart) {
        error_ = "'" + given + "' is an option of " + peers_text(peer->peers) + " that mpiexec does not have; instead: ";
        error_.append(peer->text);
        return;
    }
    const size_t count = words_of(peer->sample).size() - (attached && !peer->sample.empty() ? 1 : 0);
    if (count > arguments_.size() - next_) {
        error_ = "option '" + given + "' needs a value";
        return;
    }
    const std::string value(attached ? *attached : count > 0 ? std::string_view(arguments_[next_]) : std::string_view());
    next_ += count;
    if (peer->answer == PeerAnswer::ignored) {
        out_.remarks.push_back("'" + given + "' is ignored: " + std::string(peer->text));
        return;
    }
    const std::vector<std::string> words = translation_of(*peer, value);
    std::string& remark = out_.remarks.emplace_back("'" + given + "' is taken as");
    for (const std::string& word : words) remark += " " + word;
    arguments_.insert(arguments_.begin() + static_cast<std::ptrdiff_t>(next_), words.begin(), words.end());
}

void OptionParser::take_config(const Given& given) {
    if (next_ != arguments_.size()) {
        error_ = "'" + given.option + " " + given.value + "' must be the last option: the file has the commands";
    } else if (++config_files_ > 1) {
        error_ = "'" + given.option + " " + given.value + "': a configuration file cannot name another one";
    } else {
        error_ = read_config_file(given.value, arguments_);
    }
}

// Completes all commands. Global variables are put in front, so that a command's own variables take precedence.
void OptionParser::finish() {
    if (!out_.debugged.empty()) out_.way = LaunchMethod::direct;  // before a batch job's hosts are looked up
    if (!rank_file_.empty()) place_by_ranks();
    if (error_.empty()) take_time_limit();
    for (size_t i = 0; i < out_.programs.size(); ++i) {
        Program& program = out_.programs[i];
        program.environment.insert(program.environment.begin(), global_.begin(), global_.end());
        program.forward = forwards_[i].value_or(forward_);
    }
    if (error_.empty()) error_ = finish_placement(placement_, out_.programs);
    out_.binding = placement_.binding;
    out_.nolocal |= placement_.nolocal;
    out_.notes.insert(out_.notes.end(), placement_.notes.begin(), placement_.notes.end());
    if (!error_.empty() || plan_path_.empty() || out_.programs.empty()) return;
    Plan plan;
    error_ = read_plan(plan_path_, out_.programs, plan);
    for (Program& program : out_.programs) plan.put_into(program.environment);
    out_.plan = std::make_shared<const Plan>(std::move(plan));
}

// Open MPI's and MPICH's variable for the time limit; the option takes precedence.
void OptionParser::take_time_limit() {
    const char* const told = std::getenv("MPIEXEC_TIMEOUT");
    if (out_.timeout_seconds > 0 || !told || !*told) return;
    const std::string name = "MPIEXEC_TIMEOUT", value = told;
    if (value == "0" || value == "-1") return;  // no limit
    read_timeout({name, value, value});
}

void OptionParser::place_by_ranks() {
    if (out_.programs.size() == 1 && !any_counted_) out_.programs[0].count = static_cast<uint32_t>(host_of_rank_.size());
    for (Program& program : out_.programs) program.uncounted = false;
    for (const Program& program : out_.programs) {
        if (program.per_host > 0 || program.mapping == Mapping::node)
            error_ = "the rank file '" + rank_file_ + "' places each rank; leave out -ppn and --map-by node";
    }
    if (error_.empty()) error_ = place_by(rank_file_, host_of_rank_, out_.programs);
}

std::string parse_options(const std::vector<std::string>& arguments, Options& out) {
    return OptionParser(arguments, out).run();
}

}  // namespace starling::launch
