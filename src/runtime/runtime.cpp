#include "mpi/init.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/config.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/mutex.h"
#include "base/process.h"
#include "comm/comm.h"
#include "identity/identity.h"
#include "link/locate.h"
#include "link/peer.h"
#include "link/remote.h"
#include "message/receive.h"
#include "message/send.h"
#include "mpi/check.h"
#include "mpi/dynamic.h"
#include "mpi/library.h"
#include "progress/engine.h"

namespace starling::mpi {

namespace {

/// Held while the library starts, stops, or is taken for use or given up. Before the library's lock, never under it.
constinit Mutex life;
std::atomic<int> thread_level = MPI_THREAD_SINGLE;
pthread_t main_thread;

// The library runs for MPI_Init and for every open session; MPI_Init happens once.
std::atomic<bool> world_started = false, world_ended = false;
int users = 0;  ///< MPI_Init's world, until it ends, and open sessions

void fill_environment_info(const job::JobHeader& header, int level) {
    comm::set_environment_info(static_cast<int>(header.size), level);
}

void set_state(job::RankState state) {
    const link::Process& me = link::self();
    me.job->segment().cell(me.rank).state.store(state);
    link::publish_state(state >= job::RankState::finalized);
}

/// Two that use the library at a time, each by threads of its own, may be inside at a time whatever each of them asks for.
void allow_threads(int required) {
    if (required == MPI_THREAD_MULTIPLE || config().wait == Wait::thread || (users > 0 && required > MPI_THREAD_SINGLE))
        allow_threads(Threads::at_once);
    else if (required > MPI_THREAD_SINGLE)
        allow_threads(Threads::in_turn);
}

int start(int required) {
    read_settings();
    uint32_t rank;
    job::JobSegment segment;
    if (const int error = identity::join_job(rank, segment)) return error;
    job::RankCell& cell = segment.cell(rank);
    if (cell.state.load() != job::RankState::started)
        return fail(MPI_ERR_OTHER, "rank %u has called MPI_Init already, in another process that was started as it", rank);
    cell.pid.store(getpid());
    link::Job* job = link::adopt_own_job(std::move(segment), rank);
    message::start();
    if (const int error = link::start()) return error;
    if (const int error = identity::publish_port(job->segment())) return error;
    if (identity::is_managed()) link::other_locate = identity::locate_through_manager;
    allow_threads(required);
    Lock lock;  // the progress thread runs from here on
    progress::start();
    thread_level = required;
    main_thread = pthread_self();
    comm::make_predefined();
    fill_environment_info(job->segment().header(), required);
    start_dynamic();
    phase = Phase::running;
    set_state(job::RankState::initialized);
    tell_parents_of_arrival();
    return MPI_SUCCESS;
}

/// A child made by fork has all that its parent had in memory, but is not the rank: what the parent shares with others is not
/// the child's to finish. (Its exit handlers may well call MPI_Finalize.)
bool is_forked_child() {
    const link::Process& me = link::self();
    return me.job && me.job->segment().cell(me.rank).pid.load() != getpid();
}

/// What others still wait for from us. A send whose receiver has finalized without receiving it is an error
/// of the program that must not keep this process for ever.
bool all_sent() {
    message::drop_sends_to_finalized();
    return message::open_sends() == 0 && !link::anything_pending() && link::all_acknowledged();
}

void stop() {
    {
        Lock lock;
        link::say_farewell();
        progress::stop();
        set_state(job::RankState::finalized);
        phase = Phase::finalized;
    }
    identity::leave_manager();
    comm::drop_predefined();
}

/// A program that has closed all its sessions looks finalized, and may come back. Nothing of the library runs meanwhile: the
/// process may end.
void pause() {
    Lock lock;
    link::flush_network();
    progress::stop();
    set_state(job::RankState::finalized);
}

void resume() {
    Lock lock;
    progress::start();
    set_state(job::RankState::initialized);
}

/// Makes sure that the library runs, for one more user with threads as `required` says.
int take_up(int required) {
    if (phase == Phase::finalized) return fail(MPI_ERR_OTHER, "MPI has ended and can't be started again");
    if (phase == Phase::before) {
        if (const int error = start(required)) return error;
    } else {
        allow_threads(required);
        if (users == 0) resume();
        if (required > thread_level) thread_level = required;
    }
    ++users;
    return MPI_SUCCESS;
}

/// Whether there is more than one user, or nothing that the last one has to wait for; then the caller is one no longer.
bool give_up_now(bool world) {
    const MutexGuard guard(life);
    if (users == 1) {
        Lock lock;
        if (!all_sent()) return false;
    }
    if (world) world_ended = true;
    if (--users > 0) return true;
    if (world_ended)
        stop();
    else
        pause();
    return true;
}

/// In a forked child nobody waits, and nobody else is told.
void give_up_in_child(bool world) {
    if (world) world_ended = true;
    if (--users == 0) phase = Phase::finalized;
}

/// The last user waits for what others have still to read. Others may come and go meanwhile.
void give_up(bool world) {
    if (is_forked_child()) return give_up_in_child(world);
    while (!give_up_now(world)) {
        Lock lock;
        progress::wait_until([] { return all_sent(); }, {"MPI_Finalize"});
    }
}

int begin_world(int required) {
    const MutexGuard guard(life);
    if (world_started) return fail(MPI_ERR_OTHER, "MPI was initialized already");
    if (const int error = take_up(required)) return error;
    world_started = true;
    return MPI_SUCCESS;
}

}  // namespace

void read_settings() {
    // Once: what a tool has set since then stays.
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, [] { read_config(reports_settings()); });
}

int acquire_for_session(int level) {
    const MutexGuard guard(life);
    return take_up(level);
}

void release_for_session() { give_up(false); }

void abort_job(int code) {
    const link::Process& me = link::self();
    if (me.job) {
        job::RankCell& cell = me.job->segment().cell(me.rank);
        cell.abort_code.store(code);
        cell.aborted.store(1);
    }
    flush_output();
    identity::abort_through_manager(code);
    // Only the low eight bits reach the parent process; an abort must not look like success.
    _exit((code & 0xff) != 0 ? code : 1);
}

int Init_thread(int*, char***, int required, int* provided) {
    if (required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE)
        return raise(nullptr, fail(MPI_ERR_ARG, "%d is no thread level", required));
    if (const int error = begin_world(required)) return raise(nullptr, error);
    if (provided) *provided = thread_level;
    return MPI_SUCCESS;
}

int Init(int* argc, char*** argv) { return Init_thread(argc, argv, MPI_THREAD_SINGLE, nullptr); }

int Finalize() {
    if (phase != Phase::running || !world_started || world_ended) return not_running();
    if (!is_forked_child()) {
        Lock lock;
        const comm::Kept kept(comm::self());
        kept->attributes.clear(comm::AttributeHolder(MPI_COMM_SELF));
    }
    give_up(true);
    return MPI_SUCCESS;
}

int Initialized(int* flag) {
    if (!flag) return null_argument(nullptr, "flag");
    *flag = world_started;
    return MPI_SUCCESS;
}

int Finalized(int* flag) {
    if (!flag) return null_argument(nullptr, "flag");
    *flag = world_ended;
    return MPI_SUCCESS;
}

int Query_thread(int* provided) {
    if (phase != Phase::running) return not_running();
    if (!provided) return null_argument(nullptr, "provided");
    *provided = thread_level;
    return MPI_SUCCESS;
}

int Is_thread_main(int* flag) {
    if (phase != Phase::running) return not_running();
    if (!flag) return null_argument(nullptr, "flag");
    *flag = pthread_equal(pthread_self(), main_thread) != 0;
    return MPI_SUCCESS;
}

int Abort(MPI_Comm, int errorcode) {
    // The standard asks to end the group of the communicator at least; a job can't go on without part of it.
    abort_job(errorcode);
}

}  // namespace starling::mpi
