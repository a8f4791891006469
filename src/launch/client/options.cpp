#include "launch/client/options.h"
#include "launch/client/debug_session.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "base/config.h"
#include "base/error.h"
#include "launch/client/config_file.h"
#include "launch/client/option_help.h"
#include "launch/client/output_options.h"
#include "launch/client/peer_options.h"
#include "launch/client/placement_options.h"
#include "launch/client/plan_file.h"
#include "launch/client/rank_file.h"
#include "launch/common/hosts.h"
#include "launch/common/text.h"
#include "launch/process/compat.h"

namespace starling::launch {

namespace {

class Parser {
  public:
    Parser(const std::vector<std::string>& arguments, Options& out) : arguments_(arguments), out_(out) {}

    std::string run() {
        while (next_ < arguments_.size() && error_.empty()) section();
        if (error_.empty() && !out_.help && !out_.version && out_.programs.empty()) {
            error_ = "no program given; try: mpiexec -n 4 ./program";
        }
        if (error_.empty()) finish();
        return error_;
    }

  private:
    /// An option from the command line, with the two arguments that follow it; unused ones are empty.
    struct Given {
        const std::string& option;
        const std::string& value;
        const std::string& second;
    };
    struct Option {
        std::string_view names;  ///< names of the option, comma-separated
        int values;              ///< number of arguments; kAttached: none, but =VALUE is allowed
        void (Parser::*apply)(const Given&);
    };
    static const Option kOptions[];
    static constexpr int kAttached = -1;

    // Parses one command of the MPMD list: options, program, its arguments, up to ':' or the end.
    void section() {
        program_ = Program{};
        program_forward_.reset();
        counted_ = false;
        bare_hosts_.clear();
        while (next_ < arguments_.size() && error_.empty()) {
            const std::string& argument = arguments_[next_];
            if (argument.size() < 2 || argument[0] != '-') break;
            ++next_;
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
        any_counted_ |= counted_;
        if (!counted_) leave_count_open();
        program_.appnum = static_cast<int32_t>(out_.programs.size());
        out_.programs.push_back(std::move(program_));
        forwards_.push_back(program_forward_);
    }

    // Leaves the number of processes to the root, which knows the hosts. A host that --host names without a number has one process then,
    // as with other MPIs; a host of a hostfile has one per core.
    void leave_count_open() {
        program_.uncounted = true;
        if (program_.per_host > 0) return;
        for (HostSlots& host : program_.hosts)
            if (host.slots == 0 && bare_hosts_.contains(lowercase(host.name))) host.slots = 1;
    }

    void option(const std::string& given) {
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

    void say_meaning(const std::string& given, const SharedName& shared) {
        std::string& note = out_.notes.emplace_back("'" + given + "' is taken as " + std::string(shared.taken) + "; ");
        note.append(shared.others);
    }

    // Handles an option of another launcher, as the table of such options says.
    void peer_option(const std::string& given, std::string_view name, const std::string_view* attached) {
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

    template <bool Options::*field>
    void turn_on(const Given&) {
        out_.*field = true;
    }
    template <std::string Options::*field>
    void take(const Given& given) {
        out_.*field = given.value;
    }
    template <Forward how>
    void forward(const Given&) {
        forward_ = how;
    }
    void ignore(const Given&) {}
    void set_for_all(const Given& given) { global_.emplace_back(given.value, given.second); }
    void set_for_command(const Given& given) { program_.environment.emplace_back(given.value, given.second); }
    void change_directory(const Given& given) { program_.directory = absolute(given.value); }
    void search_in(const Given& given) { program_.search_path = given.value; }
    void add_hosts(const Given& given) {
        std::vector<HostSlots> listed;
        error_ = read_hosts(given.value, listed);
        for (const HostSlots& host : listed)
            if (host.slots == 0) bare_hosts_.insert(lowercase(host.name));
        if (error_.empty()) error_ = read_hosts(given.value, program_.hosts);
    }
    void add_hostfile(const Given& given) { error_ = read_hostfile(given.value, program_.hosts, &out_.notes); }

    void read_ranks(const Given& given) {
        rank_file_ = given.value;
        host_of_rank_.clear();
        error_ = read_rank_file(given.value, host_of_rank_);
    }

    void count(const Given& given) {
        counted_ = true;
        if (!read_number(given.value, program_.count) || program_.count == 0 || program_.count > 1000000)
            error_ = "'" + given.option + " " + given.value + "' is not a number of processes (1 to 1000000)";
    }

    void read_launcher(const Given& given) {
        if (given.value == "fork") {
            out_.way = LaunchMethod::direct;
        } else if (given.value == "slurm") {
            out_.remarks.push_back("'" + given.option + " slurm' is not needed: in a Slurm allocation srun starts the daemons");
        } else if (given.value == "ssh" || given.value == "rsh") {
            out_.agent = given.value;
        } else {
            error_ = "'" + given.option + " " + given.value +
                     "' is not ssh, rsh, slurm or fork; name other commands with --launcher-agent";
        }
    }

    void export_variable(const Given& given) {
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

    using Variables = std::vector<std::pair<std::string, std::string>>;

    static void export_named(std::string_view names, Variables& out) {
        for_each_name(names, [&](std::string_view next) {
            const std::string name(next);
            if (const char* value = std::getenv(name.c_str())) out.emplace_back(name, value);
        });
    }

    void export_list(const Given& given) {
        forward_ = Forward::none;
        export_named(given.value, global_);
    }

    void export_list_here(const Given& given) {
        program_forward_ = Forward::none;
        export_named(given.value, program_.environment);
    }

    // Passes on every other variable explicitly.
    void export_others(const Given& given) {
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
            bool excluded = name.size() == variable.size();
            for_each_name(given.value, [&](std::string_view next) { excluded |= next == name; });
            if (!excluded) out.emplace_back(name, variable.substr(name.size() + 1));
        }
    }

    void set_variable(const Given& given) {
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

    void read_universe(const Given& given) {
        std::string word = given.value;
        for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        if (word == "infinite") {
            out_.universe_size = kInfiniteUniverse;
        } else if (word != "system" &&
                   (!read_number(given.value, out_.universe_size) || out_.universe_size == 0 || out_.universe_size > INT_MAX)) {
            error_ = "'" + given.option + " " + given.value + "' is neither a number of processes, nor infinite, nor system";
        }
    }

    // Stores the plan's path; finish() reads the file. Variables that the user sets explicitly take precedence over the plan's, because
    // they come later in the list.
    void take_plan(const Given& given) { plan_path_ = given.value; }

    void stand_in(const Given& given) {
        if (!is_compat(given.value))
            error_ = "'" + given.option + " " + given.value + "' is neither auto, mpich, openmpi nor off";
        global_.emplace(global_.begin(), "STARLING_COMPAT", given.value);
    }

    void read_output_directory(const Given& given) { explain(given, launch::read_output_directory(given.value, out_.output)); }
    void read_output(const Given& given) { error_ = read_output_words(given.value, out_.output, out_.tag_output, out_.notes); }
    template <std::string OutputStyle::*file>
    void read_file(const Given& given) {
        explain(given, read_file_pattern(given.value, file, out_.output));
    }
    template <bool OutputStyle::*field>
    void mark(const Given&) {
        out_.output.*field = true;
    }
    void read_prefix(const Given& given) {
        out_.output.prefix = given.value;
        explain(given, check_pattern(given.value));
    }
    void explain(const Given& given, const std::string& problem) {
        if (!problem.empty()) error_ = "'" + given.option + " " + given.value + "': " + problem;
    }

    void read_input(const Given& given) {
        if (!read_input_ranks(given.value, out_.input))
            error_ = "'" + given.option + " " + given.value + "' names no ranks; use a rank, all, none, or ranks such as 0,2-4";
    }

    void read_timeout(const Given& given) {
        uint32_t seconds = 0;
        if (!read_number(given.value, seconds) || seconds == 0 || seconds > INT_MAX / 1000) {
            error_ = "'" + given.option + " " + given.value + "' is not a number of seconds";
        }
        out_.timeout_seconds = static_cast<int>(seconds);
    }

    void choose_debugged(const Given& given) {
        if (!parse_debugged(given.value.empty() ? "0" : given.value, out_.debugged))
            error_ = "'" + given.option + "' is not a list of ranks, such as --debug=0,3";
    }

    void write_profile(const Given& given) {
        out_.profile = true;
        out_.profile_file = given.value;
        global_.emplace_back("STARLING_PROFILE", "on");
    }

    void read_binding(const Given& given) { error_ = read_bind_to(given.value, placement_); }
    void read_mapping(const Given& given) { error_ = read_map_by(given.value, program_, placement_); }
    void read_ranking(const Given& given) { error_ = read_rank_by(given.value, placement_); }
    void take_cpus(const Given& given) { error_ = read_cpu_list(given.option, given.value, placement_); }

    void take_config(const Given& given) {
        if (next_ != arguments_.size()) {
            error_ = "'" + given.option + " " + given.value + "' must be the last option: the file has the commands";
        } else if (++config_files_ > 1) {
            error_ = "'" + given.option + " " + given.value + "': a configuration file cannot name another one";
        } else {
            error_ = read_config_file(given.value, arguments_);
        }
    }

    // Open MPI's list of what to print.
    void display(const Given& given) {
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

    void read_per_host(const Given& given) {
        if (!read_number(given.value, program_.per_host) || program_.per_host == 0 || program_.per_host > 1000000)
            error_ = "'" + given.option + " " + given.value + "' is not a number of processes per host";
    }

    void read_way(const Given& given) {
        if (given.value == "direct") {
            out_.way = LaunchMethod::direct;
        } else if (given.value == "agent") {
            out_.way = LaunchMethod::agent;
        } else if (given.value == "daemons") {
            out_.way = LaunchMethod::standing;
        } else if (given.value != "auto") {
            error_ = "'--via " + given.value + "' is not valid; use auto, direct, agent or daemons";
        }
    }

    void read_foreign(const Given& given) {
        if (given.value == "plm_rsh_agent" || given.value == "plm_ssh_agent") {
            out_.agent = given.second;
        } else {
            out_.notes.push_back("'" + given.option + " " + given.value + " " + given.second +
                                 "' is a setting of another MPI: ignored");
        }
    }

    static std::string absolute(const std::string& directory) {
        char here[PATH_MAX];
        if (directory.empty() || directory[0] == '/' || !getcwd(here, sizeof here)) return directory;
        return std::string(here) + "/" + directory;
    }

    static const Option* find(std::string_view name);
    static std::string unknown_option(std::string_view given, std::string_view name);

    // Completes all commands. Global variables are put in front, so that a command's own variables take precedence.
    void finish() {
        if (!out_.debugged.empty()) out_.way = LaunchMethod::direct;  // before a batch job's hosts are looked up
        if (!rank_file_.empty()) place_by_ranks();
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

    void place_by_ranks() {
        if (out_.programs.size() == 1 && !any_counted_) out_.programs[0].count = static_cast<uint32_t>(host_of_rank_.size());
        for (Program& program : out_.programs) program.uncounted = false;
        for (const Program& program : out_.programs) {
            if (program.per_host > 0 || program.mapping == Mapping::node)
                error_ = "the rank file '" + rank_file_ + "' places each rank; leave out -ppn and --map-by node";
        }
        if (error_.empty()) error_ = place_by(rank_file_, host_of_rank_, out_.programs);
    }

    std::vector<std::string> arguments_;  ///< grows by the words of configuration files and translated options
    Options& out_;
    size_t next_ = 0;
    Program program_;
    std::vector<std::pair<std::string, std::string>> global_;
    Forward forward_ = Forward::usual;
    std::optional<Forward> program_forward_;        ///< choice of the current command, which takes precedence over forward_
    std::vector<std::optional<Forward>> forwards_;  ///< program_forward_ of each command
    PlacementOptions placement_;
    int config_files_ = 0;
    bool counted_ = false, any_counted_ = false;
    std::unordered_set<std::string> bare_hosts_;  ///< hosts of the command that --host names without a number, in lower case
    std::string rank_file_;
    std::vector<std::string> host_of_rank_;  ///< host of each rank, from the rank file
    std::string plan_path_;
    std::string error_;
};

constexpr int count_values(std::string_view values) {
    if (values.empty()) return 0;
    if (values[0] == '[') return -1;
    return 1 + static_cast<int>(std::count(values.begin(), values.end(), ' '));
}

const Parser::Option Parser::kOptions[] = {
#define OPTION(group, names, values, apply, doc) {names, count_values(values), &Parser::apply},
#include "launch/client/options.def"
#undef OPTION
};

const Parser::Option* Parser::find(std::string_view name) {
    for (const Option& option : kOptions) {
        bool found = false;
        for_each_name(option.names, [&](std::string_view here) { found |= here == name; });
        if (found) return &option;
    }
    return nullptr;
}

std::string Parser::unknown_option(std::string_view given, std::string_view name) {
    std::string_view nearest;
    size_t edits = SIZE_MAX;
    for (const Option& option : kOptions) {
        for_each_name(option.names, [&](std::string_view here) {
            const size_t distance = edit_distance(here, name);
            if (distance < edits) nearest = here, edits = distance;
        });
    }
    std::string text = "unknown option '" + std::string(given) + "'";
    const size_t digits = std::min(name.find_first_of("0123456789"), name.size());
    if (const Option* option = find(name.substr(0, digits)); option && digits < name.size()) {
        text += "; did you mean '" + std::string(given.substr(0, given.size() - name.size() + digits)) + " " +
                std::string(name.substr(digits)) + "'?";
    } else if (edits <= std::max<size_t>(1, name.size() / 3)) {
        text += std::string("; did you mean '") + (nearest.size() > 1 ? "--" : "-") + std::string(nearest) + "'?";
    }
    return text + " (mpiexec --help lists all)";
}

}  // namespace

std::string parse_options(const std::vector<std::string>& arguments, Options& out) { return Parser(arguments, out).run(); }

}  // namespace starling::launch
