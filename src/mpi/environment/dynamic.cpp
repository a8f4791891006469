#include "mpi/environment/dynamic.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/shim_hooks.h"
#include "collective/agreement.h"
#include "dynamic/dynamic.h"
#include "mpi/comm/comm.h"
#include "mpi/common/check.h"

namespace starling::mpi {

namespace {

/// The spawn arguments that are significant only at the root.
struct CommandArguments {
    int count;
    char** commands;
    char*** argvs;
    const int* maxprocs;
    const MPI_Info* infos;
};

int read_commands(const CommandArguments& in, dynamic::Commands& out) {
    if (in.count < 1) return fail(MPI_ERR_ARG, "the number of commands, %d, is not positive", in.count);
    if (!in.commands || !in.maxprocs) return fail(MPI_ERR_ARG, "the array of commands or of process counts is a null pointer");
    for (int i = 0; i < in.count; ++i) {
        dynamic::Commands::value_type command;
        if (!in.commands[i] || !*in.commands[i]) return fail(MPI_ERR_ARG, "command %d is empty", i);
        if (in.maxprocs[i] < 0) return fail(MPI_ERR_ARG, "the process count of command %d, %d, is negative", i, in.maxprocs[i]);
        command.argv.emplace_back(in.commands[i]);
        char** arguments = in.argvs ? in.argvs[i] : nullptr;
        for (; arguments && *arguments; ++arguments) command.argv.emplace_back(*arguments);
        command.maxprocs = static_cast<uint32_t>(in.maxprocs[i]);
        const MPI_Info handle = in.infos ? in.infos[i] : MPI_INFO_NULL;
        comm::Info info;
        if (!comm::read_info(handle, info))
            return fail(MPI_ERR_INFO, "the info object of command %d is not valid; was it freed?", i);
        for (const auto& entry : info.entries) command.info.emplace_back(entry.key, entry.value);
        out.push_back(std::move(command));
    }
    return MPI_SUCCESS;
}

/// Runs a collective call that takes an intra-communicator and a root, and creates an inter-communicator. If one member has a wrong
/// argument, all members get an error.
template <class Work>
int make_intercomm(MPI_Comm handle, int root, MPI_Comm* out, const char* name, Work work) {
    MakingLock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (!comm) return bad_comm(handle);
    if (comm->is_inter) return wrong_kind_of_comm(comm);
    int wrong = MPI_SUCCESS;
    if (!valid_root(*comm, root))
        wrong = fail(MPI_ERR_ROOT, "root %d is not a rank of the communicator, which has %d processes", root, comm->size);
    else if (!out)
        wrong = null_pointer(name);
    if (out) *out = MPI_COMM_NULL;
    const comm::ReferenceGuard kept(comm);
    // Members must agree before the root sends: a member with a wrong root argument may not know which process the root is.
    if (const int error = collective::agree(*comm, wrong, "inter-communicator")) return raise(comm, error);
    comm::Comm* made = nullptr;
    if (const int error = work(*comm, made)) return raise(comm, error);
    *out = comm::to_handle(made);
    return MPI_SUCCESS;
}

int spawn(const CommandArguments& arguments, int root, MPI_Comm comm, MPI_Comm* out, int codes[]) {
    return make_intercomm(comm, root, out, "intercomm", [&](comm::Comm& parents, comm::Comm*& made) {
        std::vector<dynamic::ErrorCodeRun> found;
        const int error = dynamic::spawn(
            parents, root, [&](dynamic::Commands& commands) { return read_commands(arguments, commands); }, found, made);
        // The processes for which the call failed get its code, and so its sentence.
        const int kept = error ? keep_failure(&parents, error) : MPI_SUCCESS;
        int* next = codes;
        for (const auto& [code, count] : found) {
            const int returned = code == error ? kept : code;
            if (next) next = std::fill_n(next, count, foreign ? foreign->error_code(returned) : returned);
        }
        return kept;
    });
}

/// The part of MPIX_Comm_replace that a substitute performs. Sets `parent` to the communicator that is no longer needed afterwards.
int join_survivors(int wrong, MPI_Comm* newcomm, MPI_Comm& parent) {
    MakingLock lock;
    if (phase != LibraryPhase::running) return not_running();
    comm::Comm* const parents = dynamic::parent();
    if (!parents)
        return raise(nullptr,
                     fail(MPI_ERR_COMM,
                          "the communicator is MPI_COMM_NULL, which only a process may pass that MPIX_Comm_replace has "
                          "started, and once; this process has no parents"));
    const comm::ReferenceGuard kept(parents);
    comm::Comm* made = nullptr;
    const int error = dynamic::join_survivors(*parents, wrong, made);
    if (newcomm) *newcomm = comm::to_handle(made);
    parent = comm::to_handle(parents);
    return raise(parents, error);
}

int check_names(const char* service, const void* port) {
    if (phase != LibraryPhase::running) return not_running();
    if (!service) return null_argument(nullptr, "service_name");
    if (!port) return null_argument(nullptr, "port_name");
    return MPI_SUCCESS;
}

}  // namespace

int Comm_spawn(const char* command, char* argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* intercomm,
               int array_of_errcodes[]) {
    char* commands[] = {const_cast<char*>(command)};
    char** argvs[] = {argv};
    return spawn({1, commands, argvs, &maxprocs, &info}, root, comm, intercomm, array_of_errcodes);
}

int Comm_spawn_multiple(int count, char* array_of_commands[], char** array_of_argv[], const int array_of_maxprocs[],
                        const MPI_Info array_of_info[], int root, MPI_Comm comm, MPI_Comm* intercomm, int array_of_errcodes[]) {
    return spawn({count, array_of_commands, array_of_argv, array_of_maxprocs, array_of_info}, root, comm, intercomm,
                 array_of_errcodes);
}

int Comm_get_parent(MPI_Comm* parent) {
    Lock lock;
    if (phase != LibraryPhase::running) return not_running();
    if (!parent) return null_argument(nullptr, "parent");
    *parent = comm::to_handle(dynamic::parent());
    return MPI_SUCCESS;
}

int Comm_replace(MPI_Comm comm, const char* command, char* argv[], MPI_Info info, MPI_Comm* newcomm) {
    const int wrong = newcomm ? MPI_SUCCESS : null_pointer("newcomm");
    if (newcomm) *newcomm = MPI_COMM_NULL;
    if (comm == MPI_COMM_NULL) {
        MPI_Comm parent = MPI_COMM_NULL;
        const int error = join_survivors(wrong, newcomm, parent);
        if (parent != MPI_COMM_NULL) Comm_free(&parent);
        return error;
    }
    MakingLock lock;
    comm::Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (c->is_inter) return wrong_kind_of_comm(c);
    const comm::ReferenceGuard kept(c);
    const auto read = [&](int count, dynamic::Commands& commands) {
        char* names[] = {const_cast<char*>(command)};
        char** argvs[] = {argv};
        return read_commands({1, names, argvs, &count, &info}, commands);
    };
    comm::Comm* made = nullptr;
    const int error = dynamic::replace(*c, read, wrong, made);
    if (newcomm) *newcomm = comm::to_handle(made);
    return raise(c, error);
}

int Open_port(MPI_Info, char* port_name) {
    Lock lock;
    if (phase != LibraryPhase::running) return not_running();
    if (!port_name) return null_argument(nullptr, "port_name");
    std::snprintf(port_name, MPI_MAX_PORT_NAME, "%s", dynamic::open_port().c_str());
    return MPI_SUCCESS;
}

int Close_port(const char* port_name) {
    Lock lock;
    if (phase != LibraryPhase::running) return not_running();
    return raise(nullptr, dynamic::close_port(port_name));
}

int Comm_accept(const char* port_name, MPI_Info, int root, MPI_Comm comm, MPI_Comm* newcomm) {
    return make_intercomm(comm, root, newcomm, "newcomm",
                          [&](comm::Comm& ours, comm::Comm*& made) { return dynamic::accept(ours, root, port_name, made); });
}

int Comm_connect(const char* port_name, MPI_Info, int root, MPI_Comm comm, MPI_Comm* newcomm) {
    return make_intercomm(comm, root, newcomm, "newcomm",
                          [&](comm::Comm& ours, comm::Comm*& made) { return dynamic::connect(ours, root, port_name, made); });
}

int Comm_join(int fd, MPI_Comm* intercomm) {
    MakingLock lock;
    if (phase != LibraryPhase::running) return not_running();
    if (!intercomm) return null_argument(nullptr, "intercomm");
    *intercomm = MPI_COMM_NULL;
    comm::Comm* made = nullptr;
    if (const int error = dynamic::join(fd, made)) return raise(nullptr, error);
    *intercomm = comm::to_handle(made);
    return MPI_SUCCESS;
}

int Publish_name(const char* service_name, MPI_Info, const char* port_name) {
    Lock lock;
    if (const int error = check_names(service_name, port_name)) return error;
    return raise(nullptr, dynamic::publish(service_name, port_name));
}

int Unpublish_name(const char* service_name, MPI_Info, const char* port_name) {
    Lock lock;
    if (const int error = check_names(service_name, port_name)) return error;
    return raise(nullptr, dynamic::unpublish(service_name, port_name));
}

int Lookup_name(const char* service_name, MPI_Info, char* port_name) {
    Lock lock;
    if (const int error = check_names(service_name, port_name)) return error;
    std::string port;
    if (const int error = dynamic::lookup(service_name, port)) return raise(nullptr, error);
    std::snprintf(port_name, MPI_MAX_PORT_NAME, "%s", port.c_str());
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
