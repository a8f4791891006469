// Options on processes, the hosts on which they run, and the way in which they start.
#include <unistd.h>

#include <climits>

#include "control/control_protocol.h"
#include "launch/client/option_parser.h"
#include "launch/client/rank_file.h"
#include "launch/common/hosts.h"
#include "launch/common/text.h"

namespace starling::launch {

namespace {

std::string absolute_directory(const std::string& directory) {
    char here[PATH_MAX];
    if (directory.empty() || directory[0] == '/' || !getcwd(here, sizeof here)) return directory;
    return std::string(here) + "/" + directory;
}

}  // namespace

void OptionParser::count(const Given& given) {
    counted_ = true;
    if (!read_number(given.value, program_.count) || program_.count == 0 || program_.count > control::kMaxProcesses)
        error_ = "'" + given.option + " " + given.value + "' is not a number of processes (1 to 1000000)";
}

void OptionParser::change_directory(const Given& given) { program_.directory = absolute_directory(given.value); }

void OptionParser::read_universe(const Given& given) {
    const std::string word = lowercase(given.value);
    if (word == "infinite") {
        out_.universe_size = kInfiniteUniverse;
    } else if (word != "system" &&
               (!read_number(given.value, out_.universe_size) || out_.universe_size == 0 || out_.universe_size > INT_MAX)) {
        error_ = "'" + given.option + " " + given.value + "' is neither a number of processes, nor infinite, nor system";
    }
}

void OptionParser::add_hosts(const Given& given) {
    std::vector<HostSlots> listed;
    error_ = read_hosts(given.value, listed);
    for (const HostSlots& host : listed)
        if (host.slots == 0) bare_hosts_.insert(lowercase(host.name));
    if (error_.empty()) error_ = read_hosts(given.value, program_.hosts);
}

void OptionParser::add_hostfile(const Given& given) { error_ = read_hostfile(given.value, program_.hosts, &out_.notes); }

void OptionParser::read_per_host(const Given& given) {
    if (!read_number(given.value, program_.per_host) || program_.per_host == 0 || program_.per_host > control::kMaxProcesses)
        error_ = "'" + given.option + " " + given.value + "' is not a number of processes per host";
}

void OptionParser::read_ranks(const Given& given) {
    rank_file_ = given.value;
    host_of_rank_.clear();
    error_ = read_rank_file(given.value, host_of_rank_);
}

void OptionParser::read_launcher(const Given& given) {
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

void OptionParser::read_way(const Given& given) {
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

void OptionParser::read_foreign(const Given& given) {
    if (given.value == "plm_rsh_agent" || given.value == "plm_ssh_agent") {
        out_.agent = given.second;
    } else if (given.value == "mpi_initial_errhandler") {
        read_errhandler({given.option + " " + given.value, given.second, {}});
    } else {
        out_.notes.push_back("'" + given.option + " " + given.value + " " + given.second +
                             "' is a setting of another MPI: ignored");
    }
}

void OptionParser::read_binding(const Given& given) { error_ = read_bind_to(given.value, placement_); }

void OptionParser::read_mapping(const Given& given) { error_ = read_map_by(given.value, program_, placement_); }

void OptionParser::read_ranking(const Given& given) { error_ = read_rank_by(given.value, placement_); }

void OptionParser::take_cpus(const Given& given) { error_ = read_cpu_list(given.option, given.value, placement_); }

}  // namespace starling::launch
