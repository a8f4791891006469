#include "launch/universe/host_agent.h"

#include <unistd.h>

#include <algorithm>
#include <climits>

#include "base/error.h"
#include "base/process.h"
#include "launch/common/process_table.h"
#include "launch/process/output.h"
#include "launch/tree/tree.h"
#include "mpi.h"

namespace starling::launch {

using control::MessageKind;
using job::JobState;

HostAgent::HostAgent(Launcher& launcher, uint32_t self, SendOrder send, Gather gather)
    : launcher_(launcher),
      self_(self),
      send_(std::move(send)),
      gather_(std::move(gather)),
      locator_(launcher, self,
               {[this](uint32_t to, const HostOrder& order) { send_(to, encode(order), false); },
                [this](const HostOrder& topic, std::string_view piece, const HostSet& contributors) {
                    gather_(topic, piece, contributors, false);
                }}) {
    launcher_.set_superior(this);
    launcher_.output().forward = [this](job::JobId job, int target, std::string lines) {
        const auto descriptor = static_cast<uint64_t>(target);
        send_order({.kind = OrderKind::output, .job = job, .descriptor = descriptor, .bytes = std::move(lines)}, true);
    };
    launcher_.on_input_read = [this](job::JobId job) { send_order({.kind = OrderKind::taken, .job = job}); };
}

HostAgent::~HostAgent() {
    launcher_.set_superior(nullptr);
    launcher_.on_input_read = nullptr;
}

void HostAgent::send_order(const HostOrder& order, bool bulk) { send_(kRootHost, encode(order), bulk); }

void HostAgent::on_order(uint32_t from, std::string_view payload) {
    HostOrder order;
    if (!decode(payload, order)) {
        launcher_.print("a message from host %u of the universe is invalid; use one version of Starling everywhere", from);
        return;
    }
    switch (order.kind) {
        case OrderKind::start:
            return start(order);
        case OrderKind::stub:
            return make_stub(order);
        case OrderKind::answer:
            return on_answer(order);
        case OrderKind::want_ports:
            return locator_.on_question(from, order);
        case OrderKind::ports:
            return locator_.on_answer(order);
        case OrderKind::abandoned:
            return locator_.on_abandoned(order);
        default:
            // No segment means that the job has ended here, so nothing is left to do.
            if (LocalJob* job = launcher_.find_job(order.job)) on_job_order(*job, order);
    }
}

// Lists the job's processes on this host, by rank.
static ProcessTable processes_of(const LocalJob& job) {
    ProcessTable table;
    table.hosts = {host_name()};
    for (const LocalRank& rank : job.ranks) {
        char path[PATH_MAX];
        const ssize_t length =
            readlink(("/proc/" + std::to_string(find_shown_id(rank.pid)) + "/exe").c_str(), path, sizeof path);
        const std::string_view program = length > 0 ? std::string_view(path, static_cast<size_t>(length)) : "?";
        table.rows.push_back({0, table.program(program), static_cast<uint32_t>(std::max(rank.pid, 0))});
    }
    return table;
}

void HostAgent::on_job_order(LocalJob& job, HostOrder& order) {
    switch (order.kind) {
        case OrderKind::undo_start: {
            const job::JobId id = job.id();
            launcher_.undo_part(job);
            locator_.forget(id);
            break;
        }
        case OrderKind::fail:
            launcher_.end_part(job, static_cast<int>(order.failed_rank));
            locator_.forget(job.id());
            break;
        case OrderKind::over: {
            const job::JobId id = job.id();
            launcher_.release_part(job, static_cast<JobState>(order.state));
            locator_.forget(id);
            break;
        }
        case OrderKind::kill:
            launcher_.kill_part(job);
            break;
        case OrderKind::ranks_failed:
            ranks_failed(job, order);
            break;
        case OrderKind::signal:
            launcher_.signal_part(job, static_cast<int>(order.signal));
            break;
        case OrderKind::all_arrived:
            all_arrived(job);
            break;
        case OrderKind::ring:
            launcher_.ring_ranks(job);
            break;
        case OrderKind::gather_ports:
            locator_.collect(job, order);
            break;
        case OrderKind::table:
            locator_.on_table(job, order);
            break;
        case OrderKind::input:
            launcher_.feed_input(job, order.bytes);
            break;
        case OrderKind::written:
            launcher_.output().acknowledge(job.id(), static_cast<int>(order.descriptor), order.count);
            break;
        case OrderKind::list:
            gather_({.kind = OrderKind::processes, .job = job.id()}, encode(processes_of(job)), HostSet::of(job.tree_hosts),
                    false);
            break;
        case OrderKind::stacks:
            launcher_.show_stacks(job,
                                  [this, id = job.id()] { send_order({.kind = OrderKind::stacks_shown, .job = id}, true); });
            break;
        default:
            break;
    }
}

void HostAgent::start(const HostOrder& order) {
    StartOrder start;
    StartReport report;
    StartOutcome outcome;
    if (!decode(order.bytes, start)) {
        outcome.error_class = MPI_ERR_OTHER;
        outcome.text = "the order to start a job is invalid; use one version of Starling on all hosts";
    } else {
        const auto& hosts = start.part.tree_hosts;
        const auto mine = std::find(hosts.begin(), hosts.end(), self_);
        start.part.my_host = static_cast<uint32_t>(mine - hosts.begin());
        outcome = launcher_.start_part(start.spec, start.part);
    }
    report.error_class = outcome.error_class;
    report.failed_program = static_cast<uint32_t>(outcome.failed_program);
    report.failed_index = outcome.failed_index;
    report.text = std::move(outcome.text);
    report.cannot_run = outcome.cannot_run && start.part.reads_cannot_run;
    const HostSet all = HostSet::of(start.part.tree_hosts);
    gather_({.kind = OrderKind::started, .job = order.job}, encode(report), all, false);
}

void HostAgent::make_stub(const HostOrder& order) {
    StubOrder stub;
    if (!decode(order.bytes, stub) || launcher_.find_job(stub.description.id)) return;
    LocalJob* job = launcher_.make_stub(stub.description, stub.tree_hosts, stub.number);
    if (!job) {
        launcher_.print("%s", std::string(failure_text()).c_str());
    } else if (stub.all_arrived) {
        all_arrived(*job);
    }
}

void HostAgent::all_arrived(LocalJob& job) {
    job::JobHeader& header = job.segment.header();
    header.all_arrived.store(1, std::memory_order_release);
    // Processes that use the stub must see all ranks as arrived.
    if (header.local_ranks == 0) header.arrived.store(header.size, std::memory_order_release);
}

void HostAgent::ranks_failed(LocalJob& job, const HostOrder& order) {
    RankRuns runs;
    if (!decode(order.bytes, runs)) return;
    const uint32_t size = job.segment.header().size;
    std::vector<uint32_t> ranks;
    for (const job::Placement& run : runs) {
        for (uint64_t i = 0, rank = run.first; i < run.count && rank < size; ++i, rank += run.stride)
            ranks.push_back(static_cast<uint32_t>(rank));
    }
    launcher_.mark_failed(job, ranks);
    locator_.forget(job.id(), ranks);
}

bool HostAgent::have_all_arrived(const LocalJob& job) {
    const job::JobHeader& header = job.segment.header();
    return header.local_ranks > 0 && header.blob_size > 0 &&
           header.arrived.load(std::memory_order_acquire) >= header.local_ranks;
}

// Reports that all ranks here have reached the end of MPI_Init. With `at_once` the report is sent as a single message, not gathered, so
// that later messages of this host cannot overtake it.
void HostAgent::report_arrival(LocalJob& job, bool at_once) {
    if (!have_all_arrived(job) || (job.arrival_reported && !at_once)) return;
    job.arrival_reported = true;
    const HostOrder arrived{.kind = OrderKind::arrived, .job = job.id()};
    if (at_once) {
        send_order(arrived);
    } else {
        gather_(arrived, {}, HostSet::of(job.tree_hosts), false);
    }
}

void HostAgent::failed(LocalJob& job, const RankFailure& failure) {
    // The death of a rank may be noticed before its report of the arrival is read. Check the segment, where the arrival is stored.
    report_arrival(job, true);
    // Parents on any host wait until all ranks of a spawned job have arrived. If one never does, the whole job must end, even if it
    // recovers: the parents would wait as long as the other ranks run. Parents of a job on one host see that in its segment themselves.
    const job::JobHeader& header = job.segment.header();
    const bool never_complete =
        failure.before_arrival && header.blob_size > 0 && header.several_hosts != 0 && !have_all_arrived(job);
    const FailureReport report{failure.rank,     failure.status,    failure.exit_code, failure.aborted || never_complete,
                               failure.sentence, failure.finalized, failure.running};
    send_order({.kind = OrderKind::failed, .job = job.id(), .rank = failure.rank, .bytes = encode(report)});
}

void HostAgent::absent(LocalJob& job, uint32_t rank, const std::string& sentence) {
    send_order({.kind = OrderKind::absent, .job = job.id(), .rank = rank, .text = sentence});
}

void HostAgent::on_all_ended(LocalJob& job) {
    GoneReport report{have_all_arrived(job), 0, 0};
    locator_.count(job.id(), report.lookups, report.tables);
    gather_({.kind = OrderKind::ranks_ended, .job = job.id()}, encode(report), HostSet::of(job.tree_hosts), true);
}

bool HostAgent::forward_request(LocalJob& job, uint32_t rank, MessageKind kind, const std::string& payload,
                                ReplyCallback answer) {
    switch (kind) {
        case MessageKind::spawn:
            // Set the address of the child's segment on this host, which only this host knows.
            request_from_root(job, rank, kind, payload, [this, answer = std::move(answer)](const std::string& bytes) {
                control::SpawnReply reply;
                if (decode(bytes, reply) && reply.error_class == MPI_SUCCESS) {
                    if (!launcher_.find_segment(reply.job.id, reply.job)) {
                        reply.error_class = MPI_ERR_SPAWN;
                        reply.text =
                            "this host has not enough memory for the spawned job's segment; free memory, or spawn "
                            "fewer processes";
                    }
                }
                answer(encode(reply));
            });
            return true;
        case MessageKind::publish:
        case MessageKind::unpublish:
        case MessageKind::lookup:
        case MessageKind::disconnect:
        case MessageKind::profile:
        case MessageKind::plan:
        case MessageKind::forsake:
            request_from_root(job, rank, kind, payload, std::move(answer));
            return true;
        case MessageKind::resolve:
        case MessageKind::locate:
        case MessageKind::arrived:
        case MessageKind::abandoned:
            return find(job, rank, kind, payload, std::move(answer));
        default:
            return false;
    }
}

void HostAgent::request_from_root(LocalJob& job, uint32_t rank, MessageKind kind, const std::string& payload,
                                  ReplyCallback answer) {
    const uint64_t token = ++last_token_;
    asked_[token] = std::move(answer);
    const auto message = static_cast<uint64_t>(kind);
    // Profiles are long and not urgent. They are sent as bulk, so they arrive in order with the job's output and before `ranks_ended`.
    const bool bulk = kind == MessageKind::profile;
    send_order(
        {.kind = OrderKind::rank_request, .job = job.id(), .rank = rank, .token = token, .message = message, .bytes = payload},
        bulk);
}

bool HostAgent::find(LocalJob& job, uint32_t rank, MessageKind kind, const std::string& payload, ReplyCallback answer) {
    control::JobQuery query;
    if (!decode(payload, query)) return false;
    control::JobReply reply;
    if (kind == MessageKind::arrived) {
        report_arrival(job);
        answer(encode(reply));
        return true;
    }
    if (kind == MessageKind::abandoned) {
        const LocalJob* about = launcher_.find_job(query.job);
        if (about && query.rank < about->segment.header().size) locator_.notify_abandoned(job, rank, *about, query.rank);
        answer(encode(reply));
        return true;
    }
    if (kind == MessageKind::locate) {
        LocalJob* about = launcher_.find_job(query.job);
        if (about && query.rank < about->segment.header().size) {
            locator_.locate(*about, query.rank, std::move(answer));
            return true;
        }
        reply.error_class = MPI_ERR_PROC_ABORTED;
        reply.text = "the job that was asked for is not known on this host, or has ended";
        answer(encode(reply));
        return true;
    }
    if (launcher_.find_segment(query.job, reply.job)) {
        answer(encode(reply));
        return true;
    }
    std::vector<ReplyCallback>& waiting = being_resolved_[query.job];
    waiting.push_back(std::move(answer));
    if (waiting.size() > 1) return true;
    request_from_root(job, rank, kind, payload, [this, id = query.job](const std::string& bytes) {
        control::JobReply reply;
        if (!decode(bytes, reply)) reply.error_class = MPI_ERR_OTHER;
        if (launcher_.find_segment(id, reply.job)) reply.error_class = MPI_SUCCESS;
        for (const ReplyCallback& answer : std::exchange(being_resolved_[id], {})) answer(encode(reply));
        being_resolved_.erase(id);
    });
    return true;
}

void HostAgent::on_answer(HostOrder& order) {
    const auto found = asked_.find(order.token);
    if (found == asked_.end()) return;
    const ReplyCallback answer = std::move(found->second);
    asked_.erase(found);
    answer(order.bytes);
}

void HostAgent::end_everything() {
    while (!launcher_.jobs().empty()) {
        LocalJob& job = launcher_.jobs().front();
        launcher_.kill_part(job);
        launcher_.undo_part(job);
    }
}

}  // namespace starling::launch
