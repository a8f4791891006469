// Spawning (MPI 5.0 section 11.8). The launcher starts the children; parents and children then know each
// other at once: the children find the parents' group in their job segment, the parents get the child job's
// address from their root. Nothing is exchanged between the two.
#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/wire.h"
#include "control/control.h"
#include "identity/identity.h"
#include "job/doorbell.h"
#include "link/forget.h"
#include "link/peer.h"
#include "message/receive.h"
#include "message/retired.h"
#include "mpi/check.h"
#include "mpi/dynamic.h"
#include "mpi/dynamic_common.h"
#include "progress/engine.h"

namespace starling::mpi {

namespace {

MPI_Comm parent_handle = MPI_COMM_NULL;
uint64_t parent_context = 0;
link::Process parent_root;

/// What a spawned job finds in its segment.
struct Parents {
    uint64_t context = 0;
    uint32_t root = 0;  ///< rank in the group
    std::string group;
};

std::string encode(const Parents& parents) {
    return Writer().number(parents.context).number(parents.root).string(parents.group).take();
}

bool decode(std::string_view bytes, Parents& parents) {
    Reader reader(bytes);
    parents.context = reader.number<uint64_t>();
    parents.root = reader.number<uint32_t>();
    parents.group = reader.string();
    return reader.done();
}

/// What the root of a spawn tells the other parents.
struct Child {
    uint64_t context = 0;
    job::JobAddress job;
    uint32_t size = 0;
    /// As many processes in a row with this code; of those asked for, which may be more than there can be.
    struct Codes {
        int32_t code;
        uint64_t count;
    };
    std::vector<Codes> codes;

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

/// The arguments that matter at the root only.
struct Commands {
    int count;
    char** commands;
    char*** argvs;
    const int* maxprocs;
    const MPI_Info* infos;
};

int read_commands(const Commands& in, std::vector<control::SpawnCommand>& out) {
    if (in.count < 1) return fail(MPI_ERR_ARG, "a spawn of %d commands", in.count);
    if (!in.commands || !in.maxprocs) return fail(MPI_ERR_ARG, "an array of commands or process counts is null");
    for (int i = 0; i < in.count; ++i) {
        control::SpawnCommand command;
        if (!in.commands[i] || !*in.commands[i]) return fail(MPI_ERR_ARG, "command %d is empty", i);
        if (in.maxprocs[i] < 0) return fail(MPI_ERR_ARG, "command %d asks for %d processes", i, in.maxprocs[i]);
        command.argv.emplace_back(in.commands[i]);
        char** arguments = in.argvs ? in.argvs[i] : nullptr;
        for (; arguments && *arguments; ++arguments) command.argv.emplace_back(*arguments);
        command.maxprocs = static_cast<uint32_t>(in.maxprocs[i]);
        const MPI_Info handle = in.infos ? in.infos[i] : MPI_INFO_NULL;
        comm::Info info;
        if (!comm::read_info(handle, info)) return fail(MPI_ERR_INFO, "the info of command %d is not valid", i);
        for (const auto& entry : info.entries) command.info.emplace_back(entry.key, entry.value);
        out.push_back(std::move(command));
    }
    return MPI_SUCCESS;
}

enum class Arrival { waiting, complete, failed };

/// Children that have ended without calling MPI_Init will never arrive; the launcher marks those of this host, and ends
/// the job for those of others.
Arrival look_for_arrival(job::JobSegment& segment) {
    const job::JobHeader& header = segment.header();
    if (segment.all_arrived()) return Arrival::complete;
    bool may_come = header.local_ranks < header.size;
    for (uint32_t i = 0; i < header.local_ranks && !may_come; ++i)
        may_come = segment.cell(segment.local_rank(i)).state.load() == job::RankState::started;
    if (may_come) return job::job_alive(segment) ? Arrival::waiting : Arrival::failed;
    return segment.all_arrived() ? Arrival::complete : Arrival::failed;
}

int wait_for_children(job::JobSegment& segment) {
    uint64_t look_closely_at = now_ns() + 5'000'000;
    Arrival arrival = Arrival::waiting;
    progress::wait_until(
        [&] {
            if (segment.all_arrived()) arrival = Arrival::complete;
            if (arrival != Arrival::waiting) return true;
            if (const uint64_t now = now_ns(); now > look_closely_at) {
                look_closely_at = now + 5'000'000;
                arrival = look_for_arrival(segment);
            }
            return arrival != Arrival::waiting;
        },
        {"MPI_Comm_spawn"});
    if (arrival == Arrival::complete) return MPI_SUCCESS;
    return fail(MPI_ERR_SPAWN, "a process of %s ended before it called MPI_Init", segment.header().command);
}

bool all_on_this_host(const comm::Group& group) {
    for (int rank = 0; rank < group.size(); ++rank)
        if (!on_this_host(group.at(rank))) return false;
    return true;
}

/// The root's part: has the children started and waits until all have called MPI_Init.
int start_children(comm::Comm& comm, const Commands& commands, Child& child) {
    control::SpawnRequest request;
    if (const int error = read_commands(commands, request.commands)) return error;
    uint64_t wanted = 0;
    for (const auto& command : request.commands) wanted += command.maxprocs;
    child.codes = {{MPI_ERR_SPAWN, wanted}};
    if (wanted > control::kMaxProcesses) {
        return fail(MPI_ERR_SPAWN, "a spawn of %llu processes; a job has %u at most", static_cast<unsigned long long>(wanted),
                    control::kMaxProcesses);
    }
    // The helpers on the hosts of such a job know nothing of what the others start.
    if (identity::is_managed() && !all_on_this_host(comm.local_group())) {
        return fail(MPI_ERR_SPAWN,
                    "processes on several hosts can't spawn together in a job that another manager than Starling's has "
                    "started; start it with Starling's mpiexec, which uses the hosts of a Slurm allocation");
    }
    child.context = comm::new_context();
    if (const int error = comm::check_context(child.context)) return error;
    request.blob = encode(Parents{child.context, static_cast<uint32_t>(comm.rank), encode(comm.local_group())});

    std::string bytes;
    if (const int error = call_launcher(control::MessageKind::spawn, encode(request), bytes)) return error;
    control::SpawnReply reply;
    if (!decode(bytes, reply)) return fail(MPI_ERR_INTERN, "the launcher's answer to a spawn is garbled");
    if (reply.codes.size() == wanted) {
        child.codes.clear();
        for (const int32_t code : reply.codes) child.add(code, 1);
    }
    if (reply.error_class) return fail(reply.error_class, "%s", reply.text.c_str());

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

void give_codes(const Child& child, int codes[]) {
    if (!codes) return;
    for (const auto& [code, count] : child.codes) codes = std::fill_n(codes, count, code);
}

comm::Group* whole_job(link::Job* job, uint32_t size) {
    comm::GroupBuilder builder;
    builder.add(comm::Run{job, 0, 1, static_cast<int32_t>(size)});
    return builder.build();
}

int spawn(const Commands& commands, int root, MPI_Comm handle, MPI_Comm* out, int codes[], const char* function) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (!comm) return bad_comm(handle, function);
    if (comm->is_inter) return wrong_kind_of_comm(comm, function);
    if (!valid_root(*comm, root)) return bad_root(comm, root, function);
    if (!out) return null_argument(comm, "intercomm", function);
    *out = MPI_COMM_NULL;
    link::make_room_for_jobs();

    const comm::Kept kept(comm);
    Child child;
    Verdict verdict;
    if (comm->rank == root) {
        verdict = judge([&](std::string& result) {
            const int error = start_children(*comm, commands, child);
            result = encode(child);
            return error;
        });
    }
    const int error = spread(*comm, root, verdict);
    if (comm->rank != root && !verdict.result.empty() && !decode(verdict.result, child))
        return raise(comm, fail(MPI_ERR_INTERN, "what the root of a spawn told is garbled"), function);
    give_codes(child, codes);
    if (error) return raise(comm, error, function);

    // A child that is gone by now was there: that it died is an error of the inter-communicator.
    link::Job* job = link::find_job(child.job);
    const int mapped = job->map();
    if (mapped && !job->dead()) {
        message::retire_context(child.context);
        return raise(comm, mapped, function);
    }
    if (mapped) message::fail_job(*job);
    comm::Comm* inter = comm::make_intercomm(child.context, comm->local_group().retain(), comm->rank,
                                             whole_job(job, child.size), true, comm->errhandler);
    note_spawned(*inter, child.job.id);
    *out = comm::to_handle(inter);
    return MPI_SUCCESS;
}

}  // namespace

int Comm_spawn(const char* command, char* argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* intercomm,
               int array_of_errcodes[]) {
    char* commands[] = {const_cast<char*>(command)};
    char** argvs[] = {argv};
    return spawn({1, commands, argvs, &maxprocs, &info}, root, comm, intercomm, array_of_errcodes, "MPI_Comm_spawn");
}

int Comm_spawn_multiple(int count, char* array_of_commands[], char** array_of_argv[], const int array_of_maxprocs[],
                        const MPI_Info array_of_info[], int root, MPI_Comm comm, MPI_Comm* intercomm, int array_of_errcodes[]) {
    return spawn({count, array_of_commands, array_of_argv, array_of_maxprocs, array_of_info}, root, comm, intercomm,
                 array_of_errcodes, "MPI_Comm_spawn_multiple");
}

int Comm_get_parent(MPI_Comm* parent) {
    Lock lock;
    if (phase != Phase::running) return not_running();
    if (!parent) return null_argument(nullptr, "parent");
    // Once freed or disconnected there is no parent any more; another communicator may live in its place.
    const comm::Comm* comm = comm::from_handle(parent_handle);
    *parent = comm && comm->context() == parent_context ? parent_handle : MPI_COMM_NULL;
    return MPI_SUCCESS;
}

void start_dynamic() {
    start_ports();
    const link::Process& me = link::self();
    job::JobSegment& segment = me.job->segment();
    if (segment.header().blob_size == 0) return;
    Parents parents;
    const std::string_view blob(reinterpret_cast<const char*>(segment.blob()), segment.header().blob_size);
    comm::Group* group = decode(blob, parents) ? comm::decode_group(parents.group) : nullptr;
    if (!group || parents.root >= static_cast<uint32_t>(group->size()))
        panic("the description of the parents in the job segment is garbled");
    parent_root = group->at(static_cast<int>(parents.root));
    // Mapped now, so that the parents' end is noticed whether or not there was a message.
    for (const comm::Run& run : group->runs()) run.job->map();
    comm::Comm* comm = comm::make_intercomm(parents.context, comm::world()->local_group().retain(), static_cast<int>(me.rank),
                                            group, false, nullptr);
    comm->name = "MPI_COMM_PARENT";
    parent_context = parents.context;
    parent_handle = comm::to_handle(comm);
}

void tell_parents_of_arrival() {
    const link::Process& me = link::self();
    job::JobSegment& segment = me.job->segment();
    job::JobHeader& header = segment.header();
    const bool last_here = header.arrived.fetch_add(1) + 1 == header.local_ranks;
    if (!parent_root.job || !last_here) return;
    if (header.several_hosts) {
        // The daemons count the hosts, and ring the parents when all are there.
        control::ControlCall call;
        const control::JobQuery query{header.id, me.rank};
        control::ControlCall::start(segment, me.rank, control::MessageKind::arrived, encode(query), call);
    }
    if (!on_this_host(parent_root)) return;
    if (link::Peer* root = parent_root.job->peer(parent_root.rank)) job::ring(root->region.doorbell());
}

}  // namespace starling::mpi
