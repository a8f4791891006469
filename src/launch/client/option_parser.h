// Parses mpiexec's command line: the state while options are read, and a function for each option.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "launch/client/options.h"
#include "launch/client/output_options.h"
#include "launch/client/peer_options.h"
#include "launch/client/placement_options.h"

namespace starling::launch {

/// Reads the arguments into `out`. Used once.
class OptionParser {
  public:
    OptionParser(const std::vector<std::string>& arguments, Options& out) : arguments_(arguments), out_(out) {}

    /// Returns an empty string, or a sentence that describes the error.
    std::string run();

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
        void (OptionParser::*apply)(const Given&);
    };
    using Variables = std::vector<std::pair<std::string, std::string>>;
    static const Option kOptions[];
    static constexpr int kAttached = -1;

    // The form of a command line (option_parser.cpp).
    void section();
    void leave_count_open();
    void option(const std::string& given);
    void say_meaning(const std::string& given, const SharedName& shared);
    void peer_option(const std::string& given, std::string_view name, const std::string_view* attached);
    static const Option* find(std::string_view name);
    static std::string unknown_option(std::string_view given, std::string_view name);
    void take_config(const Given& given);
    void finish();
    void take_time_limit();
    void place_by_ranks();

    // Options that set one member.
    template <bool Options::*field>
    void turn_on(const Given&) {
        out_.*field = true;
    }
    template <std::string Options::*field>
    void take(const Given& given) {
        out_.*field = given.value;
    }
    template <bool OutputStyle::*field>
    void mark(const Given&) {
        out_.output.*field = true;
    }
    template <std::string OutputStyle::*file>
    void read_file(const Given& given) {
        explain(given, read_file_pattern(given.value, file, out_.output));
    }
    template <Forward how>
    void forward(const Given&) {
        forward_ = how;
    }
    void ignore(const Given&) {}

    // Options on processes and hosts (option_parser_processes.cpp).
    void count(const Given& given);
    void change_directory(const Given& given);
    void search_in(const Given& given) { program_.search_path = given.value; }
    void read_universe(const Given& given);
    void read_binding(const Given& given);
    void read_mapping(const Given& given);
    void read_ranking(const Given& given);
    void take_cpus(const Given& given);
    void add_hosts(const Given& given);
    void add_hostfile(const Given& given);
    void read_per_host(const Given& given);
    void read_ranks(const Given& given);
    void read_launcher(const Given& given);
    void read_way(const Given& given);
    void read_foreign(const Given& given);

    // Options on environment variables, and others that set some (option_parser_variables.cpp).
    void export_variable(const Given& given);
    void set_for_all(const Given& given) { global_.emplace_back(given.value, given.second); }
    void set_for_command(const Given& given) { program_.environment.emplace_back(given.value, given.second); }
    void export_list(const Given& given);
    void export_list_here(const Given& given);
    void export_others(const Given& given);
    void set_variable(const Given& given);
    void stand_in(const Given& given);
    void write_profile(const Given& given);
    void read_errhandler(const Given& given);

    // Options on input, output and control (option_parser_output.cpp).
    void display(const Given& given);
    void read_output_directory(const Given& given);
    void read_output(const Given& given);
    void read_prefix(const Given& given);
    void explain(const Given& given, const std::string& problem);
    void read_input(const Given& given);
    void read_timeout(const Given& given);
    void read_fault_tolerance(const Given& given);
    void choose_debugged(const Given& given);
    // Stores the plan's path; finish() reads the file. Variables that the user sets explicitly take precedence over the plan's, because
    // they come later in the list.
    void take_plan(const Given& given);

    std::vector<std::string> arguments_;  ///< grows by the words of configuration files and translated options
    Options& out_;
    size_t next_ = 0;
    Program program_;
    Variables global_;
    Forward forward_ = Forward::usual;
    std::optional<Forward> program_forward_;        ///< choice of the current command, which takes precedence over forward_
    std::vector<std::optional<Forward>> forwards_;  ///< program_forward_ of each command
    PlacementOptions placement_;
    int config_files_ = 0;
    bool counted_ = false, any_counted_ = false;
    std::string without_value_;                   ///< the command's last option, if it may have =VALUE and has none
    std::unordered_set<std::string> bare_hosts_;  ///< hosts of the command that --host names without a number, in lower case
    std::string rank_file_;
    std::vector<std::string> host_of_rank_;  ///< host of each rank, from the rank file
    std::string plan_path_;
    std::string error_;
};

}  // namespace starling::launch
