// Spawn (MPI 5.0 section 11.8). The launcher starts the children. Parents and children then know each other without exchanging anything.
// The children find the parents' group in their job segment; the parents get the child job's address from their root.
#include <unistd.h>

#include <climits>

#include "base/clock.h"
#include "base/error.h"
#include "base/wire.h"
#include "bootstrap/identity.h"
#include "dynamic/dynamic.h"
#include "dynamic/parent_comm.h"
#include "dynamic/root_result.h"
#include "link/job_reclaim.h"
#include "link/peer.h"
#include "message/closed_contexts.h"
#include "message/receive.h"
#include "progress/engine.h"

namespace starling::dynamic {

namespace {

/// The root's result of a spawn, which the other parents receive.
struct Child {
    uint64_t context = 0;
    job::JobAddress job;
    uint32_t size = 0;
    std::vector<ErrorCodeRun> codes;
    job::JobId started = 0;  ///< id of the started job; set at the root as soon as its processes exist

    void add(int32_t code, uint64_t count) {
        if (codes.empty() || codes.back().code != code) codes.push_back({code, 0});
        codes.back().count += count;
    }
};

std::string encode(const Child& child) {
    Writer writer;
    writer.number(child.context);
    control::write(writer, child.job);
    writer.number(child.size).number(static_cast<uint32_t>(child.codes.size()));
    for (const auto& [code, count] : child.codes) writer.number(code).number(count);
    return writer.take();
}

bool decode(std::string_view bytes, Child& child) {
    Reader reader(bytes);
    child.context = reader.number<uint64_t>();
    child.job = control::read_address(reader);
    child.size = reader.number<uint32_t>();
    child.codes.resize(reader.count(sizeof(int32_t) + sizeof(uint64_t)));
    for (auto& [code, count] : child.codes) {
        code = reader.number<int32_t>();
        count = reader.number<uint64_t>();
    }
    return reader.done();
}

enum class ChildrenState { waiting, complete, failed };

/// Returns whether the children have arrived, or cannot arrive any more. Children that ended without calling MPI_Init never arrive. The
/// launcher marks those of this host in the segment; if children on another host fail, it ends the whole job.
ChildrenState check_arrival(job::JobSegment& segment) {
    const job::JobHeader& header = segment.header();
    if (segment.all_arrived()) return ChildrenState::complete;
    bool may_come = header.local_ranks < header.size;
    for (uint32_t i = 0; i < header.local_ranks && !may_come; ++i)
        may_come = segment.cell(segment.local_rank(i)).state.load() == job::RankState::started;
    if (may_come) return job::job_alive(segment) ? ChildrenState::waiting : ChildrenState::failed;
    return segment.all_arrived() ? ChildrenState::complete : ChildrenState::failed;
}

/// Interval, ns, at which a wait for children checks whether they have failed.
constexpr uint64_t kLookCloselyNs = 5'000'000;

int wait_for_children(job::JobSegment& segment) {
    uint64_t check_closely_at = now_ns() + kLookCloselyNs;
    ChildrenState arrival = ChildrenState::waiting;
    progress::wait_until([&] {
        if (segment.all_arrived()) arrival = ChildrenState::complete;
        if (arrival != ChildrenState::waiting) return true;
        if (const uint64_t now = now_ns(); now > check_closely_at) {
            check_closely_at = now + kLookCloselyNs;
            arrival = check_arrival(segment);
        }
        return arrival != ChildrenState::waiting;
    });
    if (arrival == ChildrenState::complete) return MPI_SUCCESS;
    return fail(MPI_ERR_SPAWN, "a spawned process of %s ended before it called MPI_Init", segment.header().command);
}

bool all_on_this_host(const comm::Group& group) {
    for (int rank = 0; rank < group.size(); ++rank)
        if (!on_this_host(group.at(rank))) return false;
    return true;
}

// Adds the current directory to the commands. Relative names refer to it, and the children start in it; the launcher's directory may
// differ.
void add_directory(Commands& commands) {
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here) || here[0] != '/') return;  // the children start in the launcher's directory
    for (auto& command : commands) command.info.emplace(command.info.begin(), control::kCallerDirectory, here);
}

/// Performs the root's part: makes the launcher start the children, and waits until all have called MPI_Init.
int start_children(comm::Comm& comm, const std::function<int(Commands&)>& read, Child& child) {
    control::SpawnRequest request;
    if (const int error = read(request.commands)) return error;
    add_directory(request.commands);
    uint64_t wanted = 0;
    for (const auto& command : request.commands) wanted += command.maxprocs;
    child.codes = {{MPI_ERR_SPAWN, wanted}};
    if (wanted > control::kMaxProcesses) {
        return fail(MPI_ERR_SPAWN, "cannot spawn %llu processes: a job has at most %u", static_cast<unsigned long long>(wanted),
                    control::kMaxProcesses);
    }
    // If another process manager started this job, the helper process on each host does not know which processes the other hosts start.
    if (bootstrap::is_managed() && !all_on_this_host(comm.local_group())) {
        return fail(MPI_ERR_SPAWN,
                    "processes on several hosts cannot spawn together in a job of another process manager: start the job with "
                    "Starling's mpiexec, which uses the hosts of a Slurm allocation");
    }
    child.context = comm::new_context();
    if (const int error = comm::check_context(child.context)) return error;
    request.blob = encode(Parents{child.context, static_cast<uint32_t>(comm.rank), encode(comm.local_group())});

    std::string bytes;
    if (const int error = call_launcher(control::MessageKind::spawn, encode(request), bytes)) return error;
    control::SpawnReply reply;
    if (!decode(bytes, reply))
        return fail(MPI_ERR_INTERN,
                    "the launcher's reply to a spawn request is invalid; use the "
                    "mpiexec and the library of one installation");
    if (reply.codes.size() == wanted) {
        child.codes.clear();
        for (const int32_t code : reply.codes) child.add(code, 1);
    }
    if (reply.error_class) return fail(reply.error_class, "%s", reply.text.c_str());
    child.started = reply.job.id;

    link::Job* job = link::find_job(reply.job);
    const link::JobHold hold(job);
    int error = job->map();
    if (!error) error = wait_for_children(job->segment());
    if (error) {
        child.codes = {{MPI_ERR_SPAWN, wanted}};
        return error;
    }
    child.job = reply.job;
    child.size = job->segment().header().size;
    return MPI_SUCCESS;
}

comm::Group* whole_job(link::Job* job, uint32_t size) {
    comm::GroupBuilder builder;
    builder.add(comm::GroupRun{job, 0, 1, static_cast<int32_t>(size)});
    return builder.build();
}

// Notifies the launcher that the root has disconnected from its children. When a job crashes, the launcher ends its children, unless they
// have disconnected.
void on_disconnect(comm::Comm& comm) {
    if (comm.spawned == 0 || comm.rank != 0) return;
    const control::DisconnectNotice notice{comm.spawned, link::self().job->address().id};
    link::Job* child = link::job_with_id(notice.child);
    if (child && child->mapped() && child->segment().header().several_hosts == 0) {
        child->segment().header().parted.store(1, std::memory_order_release);
        return;
    }
    std::string reply;
    call_launcher(control::MessageKind::disconnect, encode(notice), reply);
}

}  // namespace

/// Performs a member's part: creates the inter-communicator with the children.
static int connect_children(comm::Comm& comm, const Child& child, comm::Comm*& made) {
    // A child job that has ended meanwhile did exist. So later calls on the inter-communicator report its end, and the spawn succeeds.
    link::Job* job = link::find_job(child.job);
    const int mapped = job->map();
    if (mapped && !job->dead()) {
        message::retire_context(child.context);
        return mapped;
    }
    if (mapped) message::fail_job(*job);
    made = comm::make_intercomm(child.context, comm.local_group().retain(), comm.rank, whole_job(job, child.size), true,
                                comm.errhandler);
    made->spawned = child.job.id;
    return MPI_SUCCESS;
}

/// Ends the children of a failed spawn. They would otherwise wait forever for parents that do not know them. The root does this; if it has
/// died, members do it that know the children. Returns `error`.
static int forsake(const comm::Comm& comm, int root, Child& child, int error) {
    if (child.started == 0 && link::has_failed(comm.local_group().at(root))) child.started = child.job.id;
    if (child.started == 0) return error;
    const std::string text(failure_text());
    std::string reply;
    call_launcher(control::MessageKind::forsake, encode(control::JobQuery{child.started, 0}), reply);
    return fail(error, "%s", text.c_str());
}

int spawn(comm::Comm& comm, int root, const std::function<int(Commands&)>& read, std::vector<ErrorCodeRun>& codes,
          comm::Comm*& made) {
    link::make_room_for_jobs();
    Child child;
    RootResult verdict;
    if (comm.rank == root) {
        verdict = evaluate_at_root([&](std::string& result) {
            const int error = start_children(comm, read, child);
            result = encode(child);
            return error;
        });
    }
    int error = broadcast_result(comm, root, verdict);
    const bool garbled = comm.rank != root && !verdict.result.empty() && !decode(verdict.result, child);
    if (error) {
        codes = std::move(child.codes);
        return forsake(comm, root, child, error);
    }
    comm::Comm* mine = nullptr;
    try {
        error = garbled ? fail(MPI_ERR_INTERN,
                               "the root sent an invalid result of the spawn; use one version of Starling in all processes")
                        : connect_children(comm, child, mine);
    } catch (const std::bad_alloc&) { error = fail(MPI_ERR_NO_MEM, "out of memory for an inter-communicator"); }
    if ((error = agree(comm, error))) {
        if (mine) mine->release();
        uint64_t wanted = 0;
        for (const auto& [code, count] : child.codes) wanted += count;
        codes = {{error, wanted}};
        return forsake(comm, root, child, error);
    }
    codes = std::move(child.codes);
    comm::on_disconnect = on_disconnect;
    made = mine;
    return MPI_SUCCESS;
}

}  // namespace starling::dynamic
