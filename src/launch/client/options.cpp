#include "launch/client/options.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/config.h"
#include "base/error.h"
#include "launch/common/hosts.h"

namespace starling::launch {

namespace {

enum class Id {
    count,
    set_env,
    set_env_pair,
    local_env_pair,
    env_list,
    env_all,
    env_none,
    directory,
    path,
    tag_output,
    recover,
    universe,
    timeout,
    bind,
    report_bindings,
    map,
    per_host,
    host,
    hostfile,
    agent,
    launcher,
    prefix,
    way,
    foreign,
    ignored,
    verbose,
    quiet,
    variable,
    version,
    help,
};

struct Option {
    std::string_view name;
    Id id;
    int values;  ///< how many arguments follow
};

constexpr Option kOptions[] = {
    {"n", Id::count, 1},
    {"np", Id::count, 1},
    {"c", Id::count, 1},
    {"x", Id::set_env, 1},
    {"genv", Id::set_env_pair, 2},
    {"env", Id::local_env_pair, 2},
    {"genvlist", Id::env_list, 1},
    {"genvall", Id::env_all, 0},
    {"envall", Id::env_all, 0},
    {"genvnone", Id::env_none, 0},
    {"envnone", Id::env_none, 0},
    {"wdir", Id::directory, 1},
    {"wd", Id::directory, 1},
    {"path", Id::path, 1},
    {"tag-output", Id::tag_output, 0},
    {"l", Id::tag_output, 0},
    {"prepend-rank", Id::tag_output, 0},
    {"enable-recovery", Id::recover, 0},
    {"disable-auto-cleanup", Id::recover, 0},
    {"continuous", Id::recover, 0},
    {"usize", Id::universe, 1},
    {"timeout", Id::timeout, 1},
    {"bind-to", Id::bind, 1},
    {"report-bindings", Id::report_bindings, 0},
    {"map-by", Id::map, 1},
    {"ppn", Id::per_host, 1},
    {"perhost", Id::per_host, 1},
    {"npernode", Id::per_host, 1},
    {"N", Id::per_host, 1},
    {"host", Id::host, 1},
    {"hosts", Id::host, 1},
    {"H", Id::host, 1},
    {"hostfile", Id::hostfile, 1},
    {"machinefile", Id::hostfile, 1},
    {"f", Id::hostfile, 1},
    {"launcher-agent", Id::agent, 1},
    {"launcher-exec", Id::agent, 1},
    {"bootstrap-exec", Id::agent, 1},
    {"launcher", Id::launcher, 1},
    {"bootstrap", Id::launcher, 1},
    {"prefix", Id::prefix, 1},
    {"via", Id::way, 1},
    {"mca", Id::foreign, 2},
    {"pmixmca", Id::foreign, 2},
    {"prtemca", Id::foreign, 2},
    {"oversubscribe", Id::ignored, 0},
    {"allow-run-as-root", Id::ignored, 0},
    {"verbose", Id::verbose, 0},
    {"v", Id::verbose, 0},
    {"quiet", Id::quiet, 0},
    {"q", Id::quiet, 0},
    {"set", Id::variable, 1},
    {"version", Id::version, 0},
    {"V", Id::version, 0},
    {"help", Id::help, 0},
    {"h", Id::help, 0},
};

size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 0; i < a.size(); ++i) {
        size_t diagonal = row[0]++;
        for (size_t j = 0; j < b.size(); ++j) {
            const size_t replace = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replace, row[j] + 1, diagonal + 1});
        }
    }
    return row[b.size()];
}

std::string unknown_option(std::string_view given, std::string_view name) {
    const Option* nearest = &*std::min_element(std::begin(kOptions), std::end(kOptions), [&](auto& a, auto& b) {
        return edit_distance(a.name, name) < edit_distance(b.name, name);
    });
    std::string text = "unknown option '" + std::string(given) + "'";
    if (edit_distance(nearest->name, name) <= std::max<size_t>(1, name.size() / 3)) {
        text += std::string("; did you mean '") + (nearest->name.size() > 1 ? "--" : "-") + std::string(nearest->name) + "'?";
    }
    return text + " (mpiexec --help lists all)";
}

bool parse_number(std::string_view text, uint32_t& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size();
}

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
    // One command of the MPMD list: options, program, its arguments, up to ':' or the end.
    void section() {
        program_ = Program{};
        counted_ = false;
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
            error_ = more || !out_.programs.empty() ? "a program is missing beside ':'"
                                                    : "no program given; try: mpiexec -n 4 ./program";
            return;
        }
        if (!counted_ && program_.per_host > 0 && !program_.hosts.empty())
            program_.count = program_.per_host * static_cast<uint32_t>(program_.hosts.size());
        program_.appnum = static_cast<int32_t>(out_.programs.size());
        out_.programs.push_back(std::move(program_));
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
        const auto* found = std::find_if(std::begin(kOptions), std::end(kOptions), [&](auto& o) { return o.name == name; });
        if (found == std::end(kOptions)) {
            error_ = unknown_option(given, name);
            return;
        }
        std::array<std::string, 2> values;
        for (int i = 0; i < found->values; ++i) {
            if (has_attached) {
                values[static_cast<size_t>(i)] = attached;
                has_attached = false;
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
        apply(found->id, given, values[0], values[1]);
    }

    void apply(Id id, const std::string& given, const std::string& value, const std::string& second) {
        switch (id) {
            case Id::count:
                counted_ = true;
                if (!parse_number(value, program_.count) || program_.count == 0 || program_.count > 1000000) {
                    error_ = "'" + given + " " + value + "' is not a number of processes (1 to 1000000)";
                }
                break;
            case Id::set_env:
                export_variable(value);
                break;
            case Id::set_env_pair:
                global_.emplace_back(value, second);
                break;
            case Id::local_env_pair:
                program_.environment.emplace_back(value, second);
                break;
            case Id::env_list:
                export_list(value);
                break;
            case Id::env_all:
                forward_ = Forward::all;
                break;
            case Id::env_none:
                forward_ = Forward::none;
                break;
            case Id::directory:
                program_.directory = absolute(value);
                break;
            case Id::path:
                program_.search_path = value;
                break;
            case Id::tag_output:
                out_.tag_output = true;
                break;
            case Id::recover:
                out_.recovers = true;
                break;
            case Id::universe:
                read_universe(given, value);
                break;
            case Id::timeout:
                read_timeout(given, value);
                break;
            case Id::bind:
                read_binding(value);
                break;
            case Id::report_bindings:
                out_.report_bindings = true;
                break;
            case Id::map:
                read_mapping(value);
                break;
            case Id::per_host:
                read_per_host(given, value);
                break;
            case Id::host:
                error_ = read_hosts(value, program_.hosts);
                break;
            case Id::hostfile:
                error_ = read_hostfile(value, program_.hosts);
                break;
            case Id::agent:
                out_.agent = value;
                break;
            case Id::launcher:
                if (value != "ssh" && value != "rsh")
                    error_ = "'" + given + " " + value + "': it is ssh or rsh; other commands by --launcher-agent";
                out_.agent = value;
                break;
            case Id::prefix:
                out_.prefix = value;
                break;
            case Id::way:
                read_way(value);
                break;
            case Id::foreign:
                read_foreign(given, value, second);
                break;
            case Id::ignored:
                break;
            case Id::verbose:
                out_.verbose = true;
                break;
            case Id::quiet:
                out_.quiet = true;
                break;
            case Id::variable:
                set_variable(value);
                break;
            case Id::version:
                out_.version = true;
                break;
            case Id::help:
                out_.help = true;
                break;
        }
    }

    void export_variable(const std::string& text) {
        const size_t equals = text.find('=');
        if (equals == 0 || text.empty()) {
            error_ = "'-x " + text + "' names no variable";
        } else if (equals != std::string::npos) {
            global_.emplace_back(text.substr(0, equals), text.substr(equals + 1));
        } else if (const char* value = std::getenv(text.c_str())) {
            global_.emplace_back(text, value);
        } else {
            error_ = "'-x " + text + "': the environment has no such variable; give a value with -x " + text + "=...";
        }
    }

    void export_list(std::string_view names) {
        forward_ = Forward::none;
        while (!names.empty()) {
            const size_t comma = names.find(',');
            const std::string name(names.substr(0, comma));
            if (const char* value = std::getenv(name.c_str())) global_.emplace_back(name, value);
            names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
        }
    }

    void set_variable(const std::string& text) {
        const size_t equals = text.find('=');
        if (equals == 0 || equals == std::string::npos) {
            error_ = "'--set " + text + "' is not NAME=VALUE";
            return;
        }
        std::string name = text.substr(0, equals);
        for (char& c : name) c = c == '-' || c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        if (!name.starts_with("STARLING_")) name.insert(0, "STARLING_");
        const std::string value = text.substr(equals + 1);
        if (check_setting(name.c_str(), value.c_str()) != 0) error_ = "'--set " + text + "': " + std::string(failure_text());
        global_.emplace_back(name, value);
    }

    void read_universe(const std::string& given, const std::string& value) {
        std::string word = value;
        for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        if (word == "infinite") {
            out_.universe_size = kInfiniteUniverse;
        } else if (word != "system" &&
                   (!parse_number(value, out_.universe_size) || out_.universe_size == 0 || out_.universe_size > INT_MAX)) {
            error_ = "'" + given + " " + value + "' is neither a number of processes, nor infinite, nor system";
        }
    }

    void read_timeout(const std::string& given, const std::string& value) {
        uint32_t seconds = 0;
        if (!parse_number(value, seconds) || seconds == 0 || seconds > INT_MAX / 1000) {
            error_ = "'" + given + " " + value + "' is not a number of seconds";
        }
        out_.timeout_seconds = static_cast<int>(seconds);
    }

    void read_binding(const std::string& value) {
        if (value == "auto")
            out_.binding = Binding::automatic;
        else if (value == "core")
            out_.binding = Binding::core;
        else if (value == "none")
            out_.binding = Binding::none;
        else
            error_ = "'--bind-to " + value + "': it is auto, core or none";
    }

    void read_mapping(const std::string& value) {
        const size_t colon = value.find(':');
        const std::string unit = value.substr(0, colon);
        if (unit == "node") {
            program_.mapping = Mapping::node;
        } else if (unit == "core") {
            program_.mapping = Mapping::core;
        } else if (unit.starts_with("ppr")) {
            error_ = "'--map-by " + value + "': use -ppn N for N processes per host";
        } else if (unit != "slot" && unit != "socket" && unit != "numa" && unit != "hwthread" && !unit.empty()) {
            error_ = "'--map-by " + value + "': it is slot, node or core";
        }
        // Modifiers (PE=2, oversubscribe, ...) say how crowded a host may get; here it may get as crowded as asked for.
        if (colon != std::string::npos && error_.empty())
            out_.notes.push_back("the modifier in --map-by " + value + " is not needed and ignored");
    }

    void read_per_host(const std::string& given, const std::string& value) {
        if (!parse_number(value, program_.per_host) || program_.per_host == 0 || program_.per_host > 1000000)
            error_ = "'" + given + " " + value + "' is not a number of processes per host";
    }

    void read_way(const std::string& value) {
        if (value == "direct") {
            out_.way = Way::direct;
        } else if (value == "agent") {
            out_.way = Way::agent;
        } else if (value == "daemons") {
            out_.way = Way::standing;
        } else if (value != "auto") {
            error_ = "'--via " + value + "': it is auto, direct, agent or daemons";
        }
    }

    void read_foreign(const std::string& given, const std::string& key, const std::string& value) {
        if (key == "plm_rsh_agent" || key == "plm_ssh_agent") {
            out_.agent = value;
        } else {
            out_.notes.push_back("'" + given + " " + key + " " + value + "' is a setting of another MPI: ignored");
        }
    }

    static std::string absolute(const std::string& directory) {
        char here[PATH_MAX];
        if (directory.empty() || directory[0] == '/' || !getcwd(here, sizeof here)) return directory;
        return std::string(here) + "/" + directory;
    }

    // Global variables hold for all commands; a command's own come later in its list and win.
    void finish() {
        for (Program& program : out_.programs) {
            program.environment.insert(program.environment.begin(), global_.begin(), global_.end());
            program.forward = forward_;
        }
    }

    const std::vector<std::string>& arguments_;
    Options& out_;
    size_t next_ = 0;
    Program program_;
    std::vector<std::pair<std::string, std::string>> global_;
    Forward forward_ = Forward::usual;
    bool counted_ = false;
    std::string error_;
};

}  // namespace

std::string parse_options(const std::vector<std::string>& arguments, Options& out) { return Parser(arguments, out).run(); }

const char* usage() {
    return R"(mpiexec: start an MPI program (or any other) as a job of several processes

  mpiexec [options] program [arguments] [ : [options] program [arguments] ]...

Processes
  -n, -np, -c N             number of processes (1)
  -wdir, -wd DIR            directory to start them in
  -path DIR[:DIR...]        where to look for the program, instead of PATH
  -usize N|infinite|system  MPI_UNIVERSE_SIZE: this, not known, or the hosts' slots (system)
  --bind-to auto|core|none  core: bind each process to one. auto (the default): while all ranks of this user fit the
                            cores, new ones begin on the least used; nobody stays bound. none: leave it to the kernel
  --report-bindings         tell where each process begins and what it is bound to
Hosts (without these, this one)
  --host, -H NAME[:SLOTS],...     hosts to run on, and how many processes have room there (one per core)
  --hostfile, -machinefile, -f FILE   the same, one per line: NAME [slots=N], or NAME:N
  -ppn, -npernode N         so many processes on each host before the next
  --map-by slot|node|core   fill host by host (slot, core), or deal out one by one (node)
  --launcher-agent COMMAND  run as COMMAND HOST PROGRAM ARGUMENTS instead of ssh
  --prefix DIR              where Starling is installed on the other hosts, if not in the same place
  --via auto|direct|agent|daemons   start through mpiexec alone, daemons by the agent, or those of `starling
                            daemon start`; auto takes the fastest (--verbose tells which and why)
Environment (on other hosts: STARLING_..., PATH and LD_LIBRARY_PATH, and what is named here)
  -x NAME[=VALUE]           set a variable for all processes
  -genv NAME VALUE          the same;  -env NAME VALUE: for this command only
  -genvlist NAMES, -genvnone, -genvall   hand on only these variables, none, or all
  --set NAME=VALUE          set a variable of Starling (starling info lists them)
Output and control
  --tag-output, -l, -prepend-rank   begin each line with its rank
  --enable-recovery         a rank or host that dies does not end the job: the others get errors and go on
  --timeout SECONDS         say what hangs, print stacks and end the job after this time (exit 124)
  -v, --verbose; -q, --quiet; --version; --help
Accepted and not needed: --oversubscribe, --allow-run-as-root, --mca KEY VALUE

Standard input goes to rank 0. The exit code is that of the first process that failed, 128 + the signal's number
if it was killed. SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP and SIGCONT are passed on; a second Ctrl-C
ends everything.
)";
}

}  // namespace starling::launch
