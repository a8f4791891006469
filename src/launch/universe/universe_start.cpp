// The start of jobs: placed by the root, started by the hosts.
#include <algorithm>
#include <unordered_map>

#include "base/config.h"
#include "launch/common/processor_placement.h"
#include "launch/common/text.h"
#include "launch/process/process_environment.h"
#include "launch/universe/universe_job.h"
#include "mpi.h"

namespace starling::launch {

// Returns the hosts for jobs that name none. A doubtful host is left out if there are others: a job that has started can't be moved.
std::vector<uint32_t> Universe::offered_hosts() const {
    std::vector<uint32_t> sure, all;
    for (uint32_t i = 0; i < hosts_.size(); ++i) {
        const UniverseHost& host = hosts_[i];
        if (!host.offered) continue;
        all.push_back(i);
        if (host.state == UniverseHost::HostState::up && !host.suspected) sure.push_back(i);
    }
    if (!sure.empty()) return sure;
    return all.empty() ? std::vector<uint32_t>{kRootHost} : all;
}

std::string Universe::refusal(const JobSpec& spec) const {
    for (const Program& program : spec.programs) {
        for (const HostSlots& wanted : program.hosts) {
            const uint32_t host = find_host(wanted.name);
            if (host == job::kNoHost)
                return "host '" + wanted.name + "' is not one of the " + number_of(offered(), "host") +
                       " of the standing daemons";
            const UniverseHost::HostState state = hosts_[host].state;
            if (state == UniverseHost::HostState::lost || state == UniverseHost::HostState::failed)
                return "the standing daemons have lost host '" + wanted.name + "' (" + hosts_[host].problem + ")";
        }
        const std::vector<uint32_t> rooms = program.hosts.empty() ? offered_hosts() : std::vector<uint32_t>();
        const auto is_up = [&](uint32_t host) { return hosts_[host].state == UniverseHost::HostState::up; };
        if (!rooms.empty() && std::none_of(rooms.begin(), rooms.end(), is_up))
            return "the standing daemons have lost all their hosts (" + hosts_[rooms[0]].problem +
                   "); end them with 'starling daemon stop'";
    }
    return {};
}

bool Universe::find_rooms(const Program& program, bool spawned, PlacementRequest& request, std::string& problem) {
    request.count = program.count;
    request.mapping = program.mapping;
    request.per_host = program.per_host;
    request.least_loaded = spawned;
    request.fixed = program.host_of_process;
    std::unordered_map<uint32_t, size_t> known;  // one machine may have several names; a rank file counts the names
    for (const HostSlots& wanted : program.hosts) {
        const uint32_t host = find_host(wanted.name);
        if (host == job::kNoHost) {
            problem = "host '" + wanted.name + "' is not in this universe";
            return false;
        }
        if (hosts_[host].state != UniverseHost::HostState::up) {
            problem = hosts_[host].problem.empty() ? "host " + wanted.name + " is not up" : hosts_[host].problem;
            return false;
        }
        const auto [at, fresh] = known.try_emplace(host, request.hosts.size());
        if (!fresh && request.fixed.empty()) {
            unite_slots(request.slots[at->second], wanted.slots);
            continue;
        }
        request.hosts.push_back(host);
        request.slots.push_back(wanted.slots);
    }
    if (!request.hosts.empty()) return true;
    request.hosts = offered_hosts();
    return true;
}

std::vector<HostCapacity> Universe::capacities() const {
    std::vector<HostCapacity> rooms;
    for (const UniverseHost& host : hosts_) {
        const bool up = host.state == UniverseHost::HostState::up;
        rooms.push_back({host.slots ? host.slots : host.facts.cores, host.placed, up});
    }
    return rooms;
}

bool Universe::place_job(const JobSpec& spec, bool spawned, std::vector<uint32_t>& host_of_rank, std::string& problem) {
    std::vector<HostCapacity> rooms = capacities();
    for (const Program& program : spec.programs) {
        PlacementRequest request;
        if (!find_rooms(program, spawned, request, problem)) return false;
        if (program.count == 0) continue;
        const std::vector<uint32_t> placed = place(request, rooms);
        if (placed.empty()) {
            problem = "no host is left to start processes on";
            for (const uint32_t host : request.hosts) {
                if (hosts_[host].problem.empty()) continue;
                problem += ": " + hosts_[host].problem;
                break;
            }
            return false;
        }
        host_of_rank.insert(host_of_rank.end(), placed.begin(), placed.end());
    }
    if (host_of_rank.empty()) problem = "a job must have at least one process";
    return !host_of_rank.empty();
}

void Universe::submit(const JobSpec& spec, JobClient& patron, Started started) {
    start(spec, patron, false, std::move(started));
}

void Universe::adopt(const launch::LocalJob& here, JobClient& patron) {
    const job::JobHeader& header = here.segment.header();
    UniverseJob& job = jobs_.emplace_back();
    job.patron = &patron;
    job.number = patron.jobs_started++;
    ++patron.jobs_left;
    job.description.id = header.id;
    job.description.size = header.size;
    job.description.universe_size = header.universe_size;
    job.description.command = header.command;
    job.spec.recovers = header.recovers != 0;
    job.tree_hosts = {kRootHost};
    job.ranks_on = {0};  // this universe has placed no rank of the job
    job.present = job.holders = HostSet::one(kRootHost);
}

static bool has_input_ranks(const JobSpec& spec, size_t size, std::string& problem) {
    for (const InputRanks::RankRange& range : spec.input.ranges) {
        if (!spec.forward_input || range.first < size) continue;
        problem = "'--stdin " + std::to_string(range.first) + "': the job has " + std::to_string(size) +
                  " processes; use a rank below that number, all or none";
        return false;
    }
    return true;
}

// Sets the numbers of processes, and places them. Returns false with `problem` if the job can't be started.
bool Universe::prepare(JobSpec& spec, bool spawned, std::vector<uint32_t>& host_of_rank, std::string& problem) {
    if (spec.encrypts && tree_ && !config().encryption) {
        problem =
            "STARLING_ENCRYPTION=on is requested, but the standing daemons were started without it: stop them (starling daemon "
            "stop) and "
            "start them with it; or set it to off";
        return false;
    }
    return set_counts(spec, problem) && place_job(spec, spawned, host_of_rank, problem) &&
           has_input_ranks(spec, host_of_rank.size(), problem);
}

void Universe::start(const JobSpec& requested, JobClient& patron, bool spawned, Started started) {
    std::vector<uint32_t> host_of_rank;
    PlacedOutcome outcome;
    JobSpec spec = requested;
    if (spawned && patron.ending() == JobClient::Ending::begun) {
        outcome.error_class = MPI_ERR_SPAWN;
        outcome.text = "the job is being ended";
        return started(outcome);
    }
    if (!prepare(spec, spawned, host_of_rank, outcome.text)) {
        outcome.error_class = MPI_ERR_SPAWN;
        return started(outcome);
    }
    UniverseJob& job = jobs_.emplace_back();
    job.spec = std::move(spec);
    job.patron = &patron;
    job.started = std::move(started);
    job.number = patron.jobs_started++;
    ++patron.jobs_left;
    for (Program& program : job.spec.programs) {
        program.host_of_process.clear();  // the placement is done, so the root does not send the indices
        if (program.directory.empty()) program.directory = patron.directory;
    }
    describe(job, std::move(host_of_rank));
    if (patron.style.display_map) display_map(job);
    introduce_parent(job);
    begin_profile(job);
    send_start(job);
}

void Universe::display_map(const UniverseJob& job) {
    const job::JobDescription& description = job.description;
    std::vector<std::vector<uint32_t>> ranks(job.tree_hosts.size());
    for (const job::Placement& run : description.placements)
        for (uint32_t i = 0; i < run.count; ++i) ranks[run.host].push_back(run.first + i * run.stride);
    const std::string of = job.number > 0 ? " in spawned job " + std::to_string(job.number) : "";
    for (uint32_t host = 0; host < ranks.size(); ++host) {
        std::sort(ranks[host].begin(), ranks[host].end());
        job.patron->print("host " + hosts_[job.tree_hosts[host]].name + " has " +
                          (ranks[host].size() > 1 ? "ranks " : "rank ") + cpus_text(ranks[host]) + " of " +
                          std::to_string(description.size) + of);
    }
}

void Universe::describe(UniverseJob& job, std::vector<uint32_t> host_of_rank) {
    job::JobDescription& description = job.description;
    description.draw();
    if (config().encryption) description.draw_network_secret();
    description.size = static_cast<uint32_t>(host_of_rank.size());
    const UniverseJob* parent = find(job.spec.parent);
    description.universe_size = job.spec.shown_universe_size(parent ? &parent->description.universe_size : nullptr, slots());
    description.several_hosts = hosts_.size() > 1;
    description.recovers = job.spec.recovers;
    description.command = job.spec.programs[0].command();
    description.blob = std::move(job.spec.blob);
    for (const uint32_t host : host_of_rank) ++hosts_[host].placed;
    job.tree_hosts = hosts_in_use(host_of_rank);
    for (const uint32_t host : job.tree_hosts) description.hosts.push_back(hosts_[host].facts.entry);
    std::vector<uint32_t> next_local(job.tree_hosts.size(), 0);
    description.placements = job::fold_placements(host_of_rank, 0, next_local);
    job.ranks_on = next_local;
    job.starting = job.present = job.holders = HostSet::of(job.tree_hosts);
    job.arriving = job.present;
}

// Sends the parent's job to the children's hosts, since the children communicate with their parents first.
void Universe::introduce_parent(const UniverseJob& child) {
    UniverseJob* parent = find(child.spec.parent);
    if (!parent) return;
    send_stub(*parent, child.present);
}

// Rejects a job whose start order exceeds the size limit of tree messages. Otherwise the connections of the tree, and other jobs, would
// suffer.
bool Universe::fits_message(UniverseJob& job, const HostOrder& order) {
    constexpr size_t kAround = 4096;
    if (order.bytes.size() + kAround <= kMaxTreePayload) return true;
    job.problem.error_class = MPI_ERR_SPAWN;
    job.problem.text = "the arguments, environment and hosts of " + job.description.command + " have " +
                       std::to_string(order.bytes.size()) +
                       " bytes together, too many for one message between daemons; use "
                       "fewer or shorter ones";
    job.problem_host = kRootHost;
    start_failed(job);
    return false;
}

void Universe::send_start(UniverseJob& job) {
    const JobClient& patron = *job.patron;
    StartOrder start;
    start.spec = job.spec;
    start.part.description = job.description;
    start.part.tree_hosts = job.tree_hosts;
    start.part.number = job.number;
    start.part.style = patron.style;
    start.part.reads_cannot_run = knows_additions(wire_version());

    HostSet others = job.present;
    others.remove(kRootHost);
    HostOrder for_others = job.order(OrderKind::start);
    if (!others.empty()) {
        StartOrder there = start;
        there.part.style.capture = true;
        const Forward forward = job.spec.programs[0].forward;
        there.part.environment = forwarded_environment(patron.environment, forward);
        there.part.whole_environment = forward == Forward::all;
        for_others.bytes = encode(there);
        if (!fits_message(job, for_others)) return;
    }
    if (job.present.contains(kRootHost)) {
        StartOrder own = std::move(start);
        own.part.style.capture = !patron.has_own_host;
        own.part.whole_environment = !patron.has_own_host && patron.whole_environment;
        if (!patron.has_own_host) own.part.environment = patron.environment;
        send_order(kRootHost, job.order(OrderKind::start, encode(own)));
    }
    if (!others.empty()) send_order(others, for_others);
}

void Universe::on_started(UniverseJob& job, const HostSet& hosts, std::string_view bytes) {
    const HostSet fresh = hosts.intersection(job.starting);
    if (fresh.empty()) return;
    const uint32_t host = fresh.front();
    StartReport report;
    if (!decode(bytes, report)) {
        report.error_class = MPI_ERR_OTHER;
        report.text = "the report of host " + hosts_[host].name + " is invalid; use one version of Starling on all hosts";
    }
    job.starting.remove(fresh);
    if (report.error_class != MPI_SUCCESS) {
        job.present.remove(fresh);
        job.holders.remove(fresh);
        // If several hosts failed, keep the failure that leaves the fewest processes: it limits the next attempt of a soft spawn.
        const bool worse =
            report.failed_program < job.problem.failed_program ||
            (report.failed_program == job.problem.failed_program && report.failed_index < job.problem.failed_index);
        if (job.problem.error_class == MPI_SUCCESS || worse) {
            job.problem = report;
            job.problem_host = host;
        }
    }
    if (!job.starting.empty()) return;
    if (job.problem.error_class != MPI_SUCCESS) {
        start_failed(job);
    } else {
        start_done(job);
    }
}

void Universe::start_failed(UniverseJob& job) {
    PlacedOutcome outcome;
    outcome.error_class = job.problem.error_class;
    outcome.text = job.problem.text;
    outcome.hosts_lost = job.lost_while_starting && job.present.empty();
    if (hosts_.size() > 1) outcome.text += " (on host " + hosts_[job.problem_host].name + ")";
    send_order(job.holders, job.order(OrderKind::undo_start));
    for (size_t i = 0; i < job.tree_hosts.size(); ++i) remove_load(job.tree_hosts[i], job.ranks_on[i]);
    const Started started = std::move(job.started);
    JobClient* patron = job.patron;
    const uint32_t number = job.number;
    outcome.failed_program = job.problem.failed_program;
    outcome.failed_index = job.problem.failed_index;
    outcome.cannot_run = job.problem.cannot_run;
    jobs_.remove_if([&](const UniverseJob& other) { return &other == &job; });
    if (patron) {
        --patron->jobs_left;
        if (patron->jobs_started > 0) --patron->jobs_started;
    }
    started(outcome);
    // The spawning job may have ended in the meantime, as the last but this one.
    if (patron && number > 0 && patron->jobs_left == 0) finish(*patron);
}

void Universe::start_done(UniverseJob& job) {
    PlacedOutcome outcome;
    outcome.job = job.id();
    if (job.patron) {
        detail(*job.patron, "started " + std::to_string(job.description.size) + " of " + job.description.command + " on " +
                                number_of(job.tree_hosts.size(), "host"));
    }
    if (job.patron && job.patron->lists_processes) list(job, true);
    const Started started = std::move(job.started);
    if (started) started(outcome);
    check_ended(job);
}

}  // namespace starling::launch
