// The daemons' part in several jobs: starts and ends them, and answers the ranks' requests about other jobs as the launcher does
// (src/launch/universe).
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "daemon.h"
#include "features.h"
#include "mpi.h"
#include "prices.h"
#include "transport/shm/region.h"

namespace starling::simulation {

using control::MessageKind;

namespace {

/// Longest delay of a message between daemons, and of the start of a process.
constexpr uint64_t kWordNs = 3'000'000;

/// Returns how long a host's daemon takes to start this rank and those before it on the host. Runs of seeds draw the time elsewhere.
uint64_t start_time(const FurtherJob& plan, uint32_t rank) {
    const auto end = plan.host_of_rank.begin() + rank + 1;
    const auto before = std::count(plan.host_of_rank.begin(), end, plan.host_of_rank[rank]);
    return prices().exact ? static_cast<uint64_t>(before) * prices().of.system_process_start : 0;
}

/// Stores MPI_APPNUM of the children: the number of their command.
void number_commands(KnownJob& job, const control::SpawnRequest& request) {
    uint32_t rank = 0;
    for (size_t command = 0; command < request.commands.size(); ++command)
        for (const uint32_t end = rank + request.commands[command].maxprocs; rank < end; ++rank)
            job.segments[job.host_of_rank[rank]].cell(rank).appnum = static_cast<int32_t>(command);
}

}  // namespace

std::string Daemons::command_of(uint32_t job) { return "job-" + std::to_string(job); }

void Daemons::start_further(Start start) {
    start_ = std::move(start);
    for (uint32_t number = 1; number < jobs_.size(); ++number)
        if (placement_.further[number - 1].starts_alone) start_job(number, {}, 0);
}

void Daemons::on_request(Process& asker, const control::ControlFrame& frame, int fd) {
    control::JobQuery query;
    control::SpawnRequest spawn;
    control::NameRequest name;
    control::DisconnectNotice notice;
    const std::string& payload = frame.payload;
    switch (frame.kind) {
        case MessageKind::locate:
            return decode(payload, query) ? on_locate(asker, query, fd) : void();
        case MessageKind::abandoned:
            return decode(payload, query) ? on_abandoned(query, asker) : void();
        case MessageKind::resolve:
            return decode(payload, query) ? on_resolve(asker, query, fd) : void();
        case MessageKind::forsake:
            return decode(payload, query) ? on_forsake(asker, query, fd) : void();
        case MessageKind::plan:
            return on_plan(asker, fd);
        case MessageKind::arrived:
            return on_arrived(*jobs_[asker.job], asker.host);
        case MessageKind::spawn:
            if (!decode(payload, spawn)) fail_run("the request to spawn is invalid");
            return on_spawn(asker, spawn, fd);
        case MessageKind::publish:
        case MessageKind::unpublish:
        case MessageKind::lookup:
            if (!decode(payload, name)) fail_run("the request about a name is invalid");
            return on_name(asker, frame.kind, name, fd);
        case MessageKind::disconnect:
            if (!decode(payload, notice)) fail_run("the notice of a disconnection is invalid");
            return on_disconnect(asker, notice, fd);
        default:
            return;
    }
}

void Daemons::reply_later(Process& to, int fd, uint64_t delay, std::function<std::string()> payload) {
    Process* const who = &to;
    world_.at_daemon(world_.now + delay, *daemons_[to.host],
                     [this, who, fd, payload = std::move(payload)] { reply(*who, fd, payload()); });
}

void Daemons::allow_spawns(Start start, Prepare prepare) {
    start_ = std::move(start);
    prepare_ = std::move(prepare);
}

uint32_t Daemons::job_for(const control::SpawnRequest& request) {
    uint32_t number = 1;
    FurtherJob made;
    made.first = placement_.processes();
    if (prepare_) return prepare_(request, made) ? add_further(std::move(made)) : static_cast<uint32_t>(jobs_.size());
    if (placement_.replaces && request.commands[0].argv[0] == kSubstitute) {
        while (made.host_of_rank.size() < request.commands[0].maxprocs)
            made.host_of_rank.push_back(static_cast<uint32_t>(world_.random.below(placement_.hosts)));
        return add_further(std::move(made));
    }
    while (number < jobs_.size() && request.commands[0].argv[0] != command_of(number)) ++number;
    return number;
}

// Adds a job that no script has drawn. Returns its number.
uint32_t Daemons::add_further(FurtherJob made) {
    while (rank_variables_.size() < made.host_of_rank.size()) rank_variables_.push_back(std::to_string(rank_variables_.size()));
    placement_.further.push_back(std::move(made));
    jobs_.emplace_back();
    return static_cast<uint32_t>(jobs_.size()) - 1;
}

// The host table has the hosts in the order of their first rank, like those of the launcher.
KnownJob& Daemons::start_job(uint32_t number, std::string blob, job::JobId parent) {
    const FurtherJob& plan = placement_.further[number - 1];
    std::vector<uint32_t> hosts;
    for (const uint32_t host : plan.host_of_rank)
        if (std::find(hosts.begin(), hosts.end(), host) == hosts.end()) hosts.push_back(host);
    job::JobDescription description = describe(plan.host_of_rank, hosts);
    description.command = command_of(number);
    description.blob = std::move(blob);
    KnownJob& job = create(number, std::move(description), plan.host_of_rank);
    job.parent = parent;
    job.connected = parent != 0;
    for (uint32_t entry = 0; entry < hosts.size(); ++entry) create_segment(job, hosts[entry], entry);
    for (uint32_t rank = 0; rank < plan.host_of_rank.size(); ++rank) {
        const uint64_t delay = word_ns(world_.random.one_in(6) ? 20 * kWordNs : kWordNs) + start_time(plan, rank);
        world_.at(world_.now + delay, [this, &job, rank] {
            if (!job.failing && !is_ending_) world_.outside([&] { start_(job.number, rank); });
        });
    }
    return job;
}

// A host that has no rank of a job, but whose ranks communicate with it, gets a segment without ranks.
void Daemons::make_stub(KnownJob& job, uint32_t host) {
    if (job.segments[host]) return;
    create_segment(job, host, job::kNoHost);
    job::JobHeader& header = job.segments[host].header();
    if (job.all_arrived()) {
        header.all_arrived.store(1);
        header.arrived.store(header.size);
    }
    if (job.failing) header.state.store(job::JobState::failed);
    for (const uint32_t rank : job.dead) job.segments[host].port(rank).store(job::PortWord{0, job::PortWord::failed}.word());
}

void Daemons::on_spawn(Process& asker, const control::SpawnRequest& request, int fd) {
    size_t wanted = 0;
    for (const control::SpawnCommand& command : request.commands) wanted += command.maxprocs;
    const uint32_t number = job_for(request);
    const uint64_t delay = word_ns(kWordNs), reply_after = delay + word_ns(2 * kWordNs);
    if (number == jobs_.size())
        return reply_later(asker, fd, delay, [wanted] {
            return encode(
                control::SpawnReply{MPI_ERR_SPAWN, "no such program", {}, std::vector<int32_t>(wanted, MPI_ERR_SPAWN)});
        });
    if (jobs_[number] || wanted != placement_.further[number - 1].host_of_rank.size())
        fail_run("job %u is spawned twice, or with a wrong number of processes: %zu", number, wanted);
    Process* const who = &asker;
    world_.at(world_.now + delay, [this, who, number, request] {
        KnownJob& parent = *jobs_[who->job];
        if (parent.failing) return;
        KnownJob& child = start_job(number, request.blob, parent.description.id);
        child.arguments = request.commands[0].argv;
        child.spawner = who;
        number_commands(child, request);
        for (const uint32_t host : child.host_of_rank) make_stub(parent, host);
        make_stub(child, who->host);
    });
    reply_later(asker, fd, reply_after, [this, who, number, wanted] {
        if (!jobs_[number])
            return encode(
                control::SpawnReply{MPI_ERR_SPAWN, "the job is being ended", {}, std::vector<int32_t>(wanted, MPI_ERR_SPAWN)});
        return encode(control::SpawnReply{
            MPI_SUCCESS, {}, jobs_[number]->segments[who->host].address(), std::vector<int32_t>(wanted, MPI_SUCCESS)});
    });
}

void Daemons::on_resolve(Process& asker, const control::JobQuery& query, int fd) {
    Process* const who = &asker;
    reply_later(asker, fd, word_ns(2 * kWordNs), [this, who, id = query.job] {
        control::JobReply found;
        KnownJob* const about = find(id);
        if (!about || about->over) {
            found.error_class = MPI_ERR_PROC_ABORTED;
            found.text = "the other job has ended";
            return encode(found);
        }
        make_stub(*about, who->host);
        found.job = about->segments[who->host].address();
        return encode(found);
    });
}

void Daemons::on_name(Process& asker, MessageKind kind, const control::NameRequest& request, int fd) {
    reply_later(asker, fd, word_ns(2 * kWordNs), [this, kind, request] {
        control::NameReply out;
        const auto known = names_.find(request.service);
        if (kind == MessageKind::publish) {
            if (!names_.try_emplace(request.service, request.port).second) out = {MPI_ERR_SERVICE, "published already", {}};
        } else if (known == names_.end()) {
            out = {kind == MessageKind::lookup ? MPI_ERR_NAME : MPI_ERR_SERVICE, "not published", {}};
        } else if (kind == MessageKind::lookup) {
            out.port = known->second;
        } else {
            names_.erase(known);
        }
        return encode(out);
    });
}

void Daemons::on_disconnect(Process& asker, const control::DisconnectNotice& notice, int fd) {
    reply_later(asker, fd, word_ns(2 * kWordNs), [this, notice] {
        KnownJob* const child = find(notice.child);
        if (child && child->parent == notice.parent) child->connected = false;
        return encode(control::NameReply{});
    });
}

void Daemons::on_forsake(Process& asker, const control::JobQuery& query, int fd) {
    const job::JobId by = jobs_[asker.job]->description.id;
    reply_later(asker, fd, word_ns(2 * kWordNs), [this, by, id = query.job] {
        KnownJob* const child = find(id);
        if (child && child->parent == by) fail(*child);
        return encode(control::JobReply{});
    });
}

// Ends a job and its children: all hosts mark it as failed, then kill its ranks.
void Daemons::fail(KnownJob& job) {
    if (std::exchange(job.failing, true)) return;
    at_hosts(world_.now, [this, &job](uint32_t host) {
        if (!job.segments[host]) return;
        job.segments[host].header().state.store(job::JobState::failed);
        ring_everyone(host);
        for (const auto& process : world_.processes()) {
            if (process->job != job.number || process->host != host || !process->fiber || process->gone()) continue;
            world_.kill(*process);
            close_all_of(*process);
            note_end(*process);
        }
    });
    for (const auto& child : jobs_)
        if (child && child->parent == job.description.id && child->connected) fail(*child);
}

void Daemons::note_end(Process& process) {
    KnownJob& job = *jobs_[process.job];
    const bool is_last = --job.left == 0;
    if (!has_several_jobs()) return;
    if (process.state != Process::State::dead)
        world_.at_daemon(world_.now + word_ns(kWordNs), *daemons_[process.host],
                         [&job, rank = process.rank, host = process.host] {
                             job.segments[host].cell(rank).state.store(job::RankState::exited);
                         });
    if (!is_last) return;
    at_hosts(world_.now + kWordNs, [this, &job](uint32_t host) {
        job.over = true;
        if (!job.segments[host]) return;
        job::JobHeader& header = job.segments[host].header();
        if (header.state.load() == job::JobState::running)
            header.state.store(job.failing ? job::JobState::failed : job::JobState::ended);
        ring_everyone(host);
    });
}

void Daemons::on_arrived(KnownJob& job, uint32_t host) {
    if (job.has_arrived[host]) return;
    job.has_arrived[host] = true;
    if (++job.arrived < job.ranks_hosts) return;
    at_hosts(world_.now, [this, &job](uint32_t host) {
        if (!job.segments[host]) return;
        job::JobHeader& header = job.segments[host].header();
        header.all_arrived.store(1);
        if (header.local_ranks == 0) header.arrived.store(header.size);
        if (const KnownJob* const parent = find(job.parent)) ring_ranks(*parent, host);
    });
}

void Daemons::ring_everyone(uint32_t host) {
    for (const auto& job : jobs_)
        if (job) ring_ranks(*job, host);
}

}  // namespace starling::simulation
