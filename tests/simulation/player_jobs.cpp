// What ranks do with other jobs: spawn them, connect to them by ports, merge and disconnect.
#include <array>
#include <cstring>

#include "daemon.h"
#include "player.h"

namespace starling::simulation {

namespace {

/// The names of ports that their owners tell the connecting ranks, by step: what a program would pass in a file.
std::map<uint32_t, std::string> told_ports;

std::string service_of(const Step& step) { return "port of step " + std::to_string(step.id); }

}  // namespace

// Checks the communicator with the parents, if there are any.
void Player::find_parents(const ScriptJob& job) {
    MPI_Comm parents = MPI_COMM_NULL;
    ok(mpi_.Comm_get_parent(&parents), "MPI_Comm_get_parent");
    if ((parents != MPI_COMM_NULL) != (job.parent != 0))
        fail_run("the rank has %s communicator with parents", job.parent != 0 ? "no" : "a");
    if (job.parent == 0) return;
    const Step& step = script_.steps[job.first_step];
    keep_inter(step, parents);
    if (script_.mortal) ok(mpi_.Comm_set_errhandler(parents, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    int* number = nullptr;
    int known = 0;
    ok(mpi_.Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &known), "MPI_Comm_get_attr");
    const int wanted = process_.rank < step.count ? 0 : 1;
    if (!known || *number != wanted) fail_run("MPI_APPNUM is %d, should be %d", known ? *number : -1, wanted);
}

// Stores a new inter-communicator, and checks both of its groups.
void Player::keep_inter(const Step& step, MPI_Comm made) {
    const Community& first = script_.communities[step.made];
    const Community& mine = script_.communities[step.made + (first.rank_of(me_) < 0 ? 1 : 0)];
    int inter = 0, others = -1;
    ok(mpi_.Comm_test_inter(made, &inter), "MPI_Comm_test_inter");
    ok(mpi_.Comm_remote_size(made, &others), "MPI_Comm_remote_size");
    if (!inter || others != static_cast<int>(mine.remote.size()))
        fail_run("step %u made a communicator with %d remote processes instead of %zu", step.id, others, mine.remote.size());
    check_place(made, mine);
    comms_[step.made] = comms_[step.made + 1] = made;
}

// The launcher cannot start the program, so the call must return the error on all members.
void Player::spawn_in_vain(const Step& step) {
    MPI_Comm made = MPI_COMM_NULL;
    std::vector<int> codes(step.count, MPI_SUCCESS);
    ok(mpi_.Comm_set_errhandler(comm(step), MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    const int code = mpi_.Comm_spawn("no-such-program", MPI_ARGV_NULL, static_cast<int>(step.count), MPI_INFO_NULL, step.from,
                                     comm(step), &made, codes.data());
    if (ok(code, "the spawn of no program", Allowed::spawn_failure))
        fail_run("step %u: a program that does not exist was spawned", step.id);
    for (const int each : codes)
        if (each == MPI_SUCCESS) fail_run("step %u: a program that does not exist has no error code", step.id);
    if (!script_.mortal) ok(mpi_.Comm_set_errhandler(comm(step), MPI_ERRORS_ARE_FATAL), "MPI_Comm_set_errhandler");
}

void Player::spawn(const Step& step) {
    if (step.job == 0) return spawn_in_vain(step);
    const std::vector<uint32_t>& children = script_.communities[step.made].remote;
    const auto size = static_cast<int>(children.size()), first = static_cast<int>(step.count);
    std::string command = Daemons::command_of(step.job);
    MPI_Comm made = MPI_COMM_NULL;
    std::vector<int> codes(children.size(), -1);
    int code = MPI_SUCCESS;
    if (first == size) {
        code = mpi_.Comm_spawn(command.c_str(), MPI_ARGV_NULL, size, MPI_INFO_NULL, step.from, comm(step), &made, codes.data());
    } else {
        std::array<char*, 2> commands = {command.data(), command.data()};
        const std::array counts = {first, size - first};
        const std::array<MPI_Info, 2> infos = {MPI_INFO_NULL, MPI_INFO_NULL};
        code = mpi_.Comm_spawn_multiple(2, commands.data(), MPI_ARGVS_NULL, counts.data(), infos.data(), step.from, comm(step),
                                        &made, codes.data());
    }
    if (!ok(code, "the spawn", script_.doomed[children[0]] ? Allowed::spawn_failure : Allowed::nothing)) return;
    for (const int each : codes)
        if (each != MPI_SUCCESS) fail_run("step %u: a process was spawned with code %d", step.id, each);
    done().add(Feature::spawn);
    keep_inter(step, made);
}

void Player::open_port(const Step& step, std::string& name) {
    std::array<char, MPI_MAX_PORT_NAME> text;
    ok(mpi_.Open_port(MPI_INFO_NULL, text.data()), "MPI_Open_port");
    name = text.data();
    if (step.any_tag)
        ok(mpi_.Publish_name(service_of(step).c_str(), MPI_INFO_NULL, name.c_str()), "MPI_Publish_name");
    else
        told_ports[step.id] = name;
}

// Waits for the port's name. The owner may be late, so the name may not exist yet. Each round calls the library: the owner may be waiting
// for an operation of this rank to progress.
void Player::find_port(const Step& step, std::string& name) {
    constexpr uint64_t kPauseNs = 500'000;
    std::array<char, MPI_MAX_PORT_NAME> text;
    ok(mpi_.Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    while (name.empty()) {
        world()->compute(kPauseNs);
        int waits = 0;
        ok(mpi_.Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &waits, MPI_STATUS_IGNORE), "MPI_Iprobe");
        if (!step.any_tag) {
            const auto told = told_ports.find(step.id);
            if (told != told_ports.end()) name = told->second;
            continue;
        }
        const int code = mpi_.Lookup_name(service_of(step).c_str(), MPI_INFO_NULL, text.data());
        int error = MPI_SUCCESS;
        mpi_.Error_class(code, &error);
        if (error == MPI_SUCCESS)
            name = text.data();
        else if (error != MPI_ERR_NAME)
            ok(code, "MPI_Lookup_name");
    }
}

void Player::connect(const Step& step) {
    const Community& first = script_.communities[step.made];
    const bool accepts = first.rank_of(me_) >= 0;
    const int root = accepts ? step.from : step.to;
    const bool is_root = (accepts ? first : script_.communities[step.made + 1]).members[static_cast<size_t>(root)] == me_;
    std::string name;
    if (is_root) accepts ? open_port(step, name) : find_port(step, name);
    MPI_Comm made = MPI_COMM_NULL;
    const MPI_Comm by = comms_[accepts ? step.comm : step.other];
    // Only the root's name counts.
    const char* const text = is_root ? name.c_str() : nullptr;
    if (accepts)
        ok(mpi_.Comm_accept(text, MPI_INFO_NULL, root, by, &made), "MPI_Comm_accept");
    else
        ok(mpi_.Comm_connect(text, MPI_INFO_NULL, root, by, &made), "MPI_Comm_connect");
    done().add(Feature::ports);
    keep_inter(step, made);
    if (!accepts || !is_root) return;
    if (step.any_tag) ok(mpi_.Unpublish_name(service_of(step).c_str(), MPI_INFO_NULL, name.c_str()), "MPI_Unpublish_name");
    ok(mpi_.Close_port(name.c_str()), "MPI_Close_port");
}

void Player::merge(const Step& step) {
    const bool is_first = script_.communities[step.comm].rank_of(me_) >= 0;
    MPI_Comm& made = comms_[step.made];
    ok(mpi_.Intercomm_merge(comm(step), is_first == step.any_tag, &made), "MPI_Intercomm_merge");
    check_place(made, script_.communities[step.made]);
}

void Player::disconnect(const Step& step) {
    ok(mpi_.Comm_disconnect(&comms_[step.comm]), "MPI_Comm_disconnect");
    if (script_.communities[step.comm].is_inter()) comms_[step.comm + 1] = MPI_COMM_NULL;
}

}  // namespace starling::simulation
