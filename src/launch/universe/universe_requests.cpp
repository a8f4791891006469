// Requests of ranks to the universe's root: spawns, names, other jobs.
#include <algorithm>

#include "launch/common/plan.h"
#include "launch/universe/spawn_request.h"
#include "launch/universe/universe_job.h"
#include "mpi.h"

namespace starling::launch {

using control::MessageKind;

/// Time for which the table of all ports waits for hosts whose ranks are late in MPI_Init.
constexpr std::chrono::milliseconds kTableWait{300};

/// A spawn in progress; with MPI's `soft` it may take several attempts.
struct Universe::Spawn {
    job::JobId parent;
    uint32_t host;  ///< host of the requesting rank
    HostOrder asked;
    JobSpec spec;
    std::vector<uint32_t> wanted;  ///< processes of each command, as first requested
};

void Universe::answer(uint32_t host, const HostOrder& asked, std::string bytes) {
    HostOrder order = asked;  // copies the fields job, rank, token and message of the request
    order.kind = OrderKind::answer;
    order.bytes = std::move(bytes);
    send_order(host, order);
}

void Universe::on_request(UniverseJob& job, uint32_t host, const HostOrder& order) {
    const auto kind = static_cast<MessageKind>(order.message);
    switch (kind) {
        case MessageKind::spawn:
            return spawn(job, host, order);
        case MessageKind::resolve:
            return resolve(job, host, order);
        case MessageKind::profile:
            return on_profile(job, host, order);
        case MessageKind::plan: {
            const Plan* const plan = job.spec.plan.get();
            const bool fits = plan && plan->is_for(job.description.command, job.description.size);
            return answer(host, order, encode(fits ? plan->part_of(order.rank) : control::PlanReply{}));
        }
        case MessageKind::disconnect: {
            control::DisconnectNotice notice;
            UniverseJob* child = nullptr;
            if (decode(order.bytes, notice) && (notice.child == job.id() || notice.parent == job.id()))
                child = find(notice.child);
            if (child && child->spec.parent == notice.parent) child->connected = false;
            return answer(host, order, encode(control::NameReply{}));
        }
        case MessageKind::forsake: {
            control::JobQuery query;
            UniverseJob* child = decode(order.bytes, query) ? find(query.job) : nullptr;
            if (child && child->spec.parent == job.id()) fail(*child, -1, 1);
            return answer(host, order, encode(control::JobReply{}));
        }
        case MessageKind::publish:
        case MessageKind::unpublish:
        case MessageKind::lookup: {
            control::NameRequest request;
            if (!decode(order.bytes, request))
                return answer(host, order,
                              encode(control::NameReply{
                                  MPI_ERR_OTHER, "the request is invalid; use one version of Starling everywhere", {}}));
            request.job = job.id();
            names_.request(kind, std::move(request),
                           [this, host, order](const control::NameReply& reply) { answer(host, order, encode(reply)); });
            return;
        }
        default:
            return;
    }
}

namespace {

// Copies the user's settings for a program (-x, -env, --compat) to the programs that it spawns. The variables of the plan are left out;
// put_into() sets them. Children get the initial error handler of the spawn's info keys, not that of their parents (MPI 5.0 section 11.8.4).
void inherit(const JobSpec& parents, uint32_t rank, Program& child) {
    if (parents.programs.empty()) return;  // the job is a singleton, which was not started with settings
    const Program* asking = &parents.programs.back();
    for (const Program& program : parents.programs) {
        if (rank < program.count) {
            asking = &program;
            break;
        }
        rank -= program.count;
    }
    auto kept = asking->environment;
    std::erase_if(kept, [](const auto& variable) {
        return variable.first.starts_with("STARLING_PLAN") || variable.first == "STARLING_INITIAL_ERRHANDLER";
    });
    child.environment.insert(child.environment.begin(), kept.begin(), kept.end());
    child.forward = asking->forward;
}

}  // namespace

void Universe::spawn(UniverseJob& job, uint32_t host, const HostOrder& order) {
    control::SpawnRequest request;
    auto spawn = std::make_shared<Spawn>(Spawn{job.id(), host, order, {}, {}});
    size_t asked = 0;
    std::string problem = "the request is invalid; use one version of Starling everywhere";
    if (decode(order.bytes, request)) {
        asked = requested_processes(request);
        problem = job_of(request, job.id(), spawn->spec, !tree_);
    }
    if (problem.empty() && (job.failing || !job.patron)) problem = "the job is being ended";
    if (!problem.empty()) {
        const control::SpawnReply reply{MPI_ERR_SPAWN, problem, {}, std::vector<int32_t>(asked, MPI_ERR_SPAWN)};
        return answer(host, order, encode(reply));
    }
    spawn->spec.recovers = job.spec.recovers;
    const bool planned = job.spec.plan && job.spec.plan->is_for(spawn->spec.programs[0].argv[0], spawn->spec.size());
    if (planned) spawn->spec.plan = job.spec.plan;
    std::vector<HostSlots> fresh;
    for (Program& program : spawn->spec.programs) {
        inherit(job.spec, order.rank, program);
        if (planned) job.spec.plan->put_into(program.environment);
        spawn->wanted.push_back(program.count);
        if (!program.soft.empty()) program.count = program.soft.back();
        for (const HostSlots& named : program.hosts) {
            if (!has_daemon(named.name)) add_host(fresh, named);
        }
    }
    if (fresh.empty()) return try_spawn(spawn);
    add_hosts(fresh, false, [this, spawn](const std::string&) { try_spawn(spawn); });
}

void Universe::try_spawn(std::shared_ptr<Spawn> spawn) {
    UniverseJob* parent = find(spawn->parent);
    if (!parent || !parent->patron) return;
    start(spawn->spec, *parent->patron, true, [this, spawn](const PlacedOutcome& outcome) {
        if (outcome.job == 0 && outcome.error_class == MPI_ERR_SPAWN) {
            // Try again with fewer processes: the largest count of the soft set that does not exceed the number that could be started.
            Program& program = spawn->spec.programs[outcome.failed_program];
            const auto above = std::upper_bound(program.soft.begin(), program.soft.end(), outcome.failed_index);
            if (above != program.soft.begin() && above[-1] != 0 && above[-1] < program.count) {
                program.count = above[-1];
                return try_spawn(spawn);
            }
        }
        control::SpawnReply reply;
        reply.error_class = outcome.error_class;
        reply.text = outcome.text;
        reply.job.id = outcome.job;
        for (size_t i = 0; i < spawn->wanted.size(); ++i) {
            for (uint32_t n = 0; n < spawn->wanted[i]; ++n) {
                const bool runs = outcome.job != 0 && n < spawn->spec.programs[i].count;
                reply.codes.push_back(runs ? MPI_SUCCESS : outcome.job ? MPI_ERR_SPAWN : outcome.error_class);
            }
        }
        if (UniverseJob* child = find(outcome.job)) send_stub(*child, HostSet::one(spawn->host));
        answer(spawn->host, spawn->asked, encode(reply));
    });
}

void Universe::send_stub(UniverseJob& job, HostSet hosts) {
    hosts.remove(job.holders);
    if (hosts.empty()) return;
    job.holders.add(hosts);
    const StubOrder stub{job.description, job.tree_hosts, job.number, job.all_arrived()};
    send_order(hosts, job.order(OrderKind::stub, encode(stub)));
    if (job.failing) send_order(hosts, job.fail(-1));
    if (!job.lost.empty()) send_order(hosts, job.order(OrderKind::ranks_failed, encode(job.lost)));
}

void Universe::resolve(UniverseJob&, uint32_t host, const HostOrder& order) {
    control::JobQuery query;
    control::JobReply reply;
    UniverseJob* about = decode(order.bytes, query) ? find(query.job) : nullptr;
    if (about) {
        send_stub(*about, HostSet::one(host));
    } else {
        reply.error_class = MPI_ERR_PROC_ABORTED;
        reply.text =
            "the other job has ended, or belongs to another universe: start standing daemons first (starling daemon start "
            "--hostfile), so that separately started jobs can connect";
    }
    answer(host, order, encode(reply));
}

void Universe::on_arrived(UniverseJob& job, const HostSet& hosts) {
    if (job.arriving.empty()) return;
    job.arriving.remove(hosts);
    if (!job.arriving.empty()) return;
    send_order(job.holders, job.order(OrderKind::all_arrived));
    if (UniverseJob* parent = find(job.spec.parent)) send_order(parent->present, parent->order(OrderKind::ring));
}

void Universe::on_want_table(UniverseJob& job, const HostSet& hosts) {
    const HostSet asked = job.ports.want(hosts, HostSet::of(job.tree_hosts).intersection(job.holders));
    if (!asked.empty()) {
        Writer set;
        asked.encode(set);
        HostOrder order = job.order(OrderKind::gather_ports, set.take());
        order.round = job.ports.round();
        send_order(asked, order);
        loop_.after(kTableWait, [this, alive = alive_, id = job.id(), round = job.ports.round()] {
            UniverseJob* job = *alive ? find(id) : nullptr;
            if (!job || job->ports.round() != round) return;
            job->ports.close_round();
            send_table(*job);
        });
    }
    send_table(job);
}

void Universe::on_host_ports(UniverseJob& job, const HostSet& hosts, std::string_view bytes) {
    HostPorts ports;
    if (!decode(bytes, ports)) return;
    for (const TreeHostId host : hosts.list()) job.ports.add(host, ports);
    send_table(job);
}

void Universe::send_table(UniverseJob& job) {
    if (!job.ports.ready()) return;
    HostSet to;
    const HostOrder order = job.order(OrderKind::table, encode(job.ports.extract(to)));
    send_order(to, order);
}

}  // namespace starling::launch
