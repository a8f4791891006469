#include "runtime/runtime.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

#include "base/config.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/mutex.h"
#include "base/process.h"
#include "base/recovery_defaults.h"
#include "base/state.h"
#include "bootstrap/identity.h"
#include "collective/survivors/agreements.h"
#include "comm/comm.h"
#include "dynamic/dynamic.h"
#include "link/address_lookup.h"
#include "link/peer.h"
#include "link/remote_peer.h"
#include "link/transports.h"
#include "message/receive.h"
#include "message/revocation.h"
#include "message/send.h"
#include "mpi.h"
#include "multicast/channel.h"
#include "plan/manager.h"
#include "plan/run_report.h"
#include "profile/record.h"
#include "profile/traffic.h"
#include "progress/engine.h"
#include "rma/target_side.h"
#include "runtime/crash_backtrace.h"
#include "runtime/error_abort.h"

namespace starling::runtime {

STARLING_STATE std::atomic<LibraryPhase> phase{LibraryPhase::before};

namespace {

/// Held while the library starts, stops, or gains or loses a user. Acquired before the library's lock, never under it.
STARLING_STATE Mutex life;
STARLING_STATE std::atomic<int> level = MPI_THREAD_SINGLE;  ///< highest thread level that a user has asked for
STARLING_STATE pthread_t main_thread;
STARLING_STATE pid_t process = 0;  ///< the process that called MPI_Init: a forked child is not the rank

STARLING_STATE int users = 0;      ///< number of users: MPI_Init's world until it ends, and open sessions
STARLING_STATE bool over = false;  ///< whether a user was released for good, so that the library cannot start again

void set_state(job::RankState state, job::PortWord published) {
    const link::Process& me = link::self();
    me.job->segment().cell(me.rank).state.store(state);
    link::publish_state(published);
}

void set_running() { set_state(job::RankState::initialized, {.state = job::PortWord::running}); }

void set_finalized(bool is_final) {
    const job::PortWord published{.state = job::PortWord::finalized, .is_final = is_final};
    set_state(job::RankState::finalized, published);
    // Processes on this host look for the final state here, too, and no transport may have published it.
    if (is_final) job::learn(link::self().job->segment().port(link::self().rank), published);
}

/// Two users of the library may each have a thread inside at the same time, whatever thread level each of them requests.
void allow_threads(int required) {
    if (required == MPI_THREAD_MULTIPLE || config().wait == WaitPolicy::thread || (users > 0 && required > MPI_THREAD_SINGLE))
        allow_threads(Threads::at_once);
    else if (required > MPI_THREAD_SINGLE)
        allow_threads(Threads::in_turn);
}

void show_pid(job::RankCell& cell) {
    process = getpid();
    if (knows_pids()) {
        ProcessOrigin origin;
        if (find_origin(process, origin)) cell.started.store(origin.start);
        cell.pid.store(process);
    } else {
        cell.apart_namespace = find_pid_namespace();
        cell.apart_pid.store(process);
    }
}

int start(int required) {
    read_settings();
    uint32_t rank;
    job::JobSegment segment;
    if (const int error = bootstrap::join_job(rank, segment)) return error;
    job::RankCell& cell = segment.cell(rank);
    if (cell.state.load() != job::RankState::started)
        return fail(MPI_ERR_OTHER, "rank %u has called MPI_Init already, in another process that was started as the same rank",
                    rank);
    show_pid(cell);
    if (segment.header().recovers) use_recovery_default("STARLING_IP_TIMEOUT");
    if (config().backtrace && knows_pids()) print_backtraces(segment.header().owner_pid, rank);
    if (config().profile) profile::start_counting();  // must precede the creation of the first peer
    link::Job* job = link::adopt_own_job(std::move(segment), rank);
    profile::start_recording(job->segment(), rank);
    message::start();
    rma::listen();
    collective::start_agreements();
    plan::start();
    if (const int error = link::start()) return error;
    if (const int error = bootstrap::publish_port(job->segment())) return error;
    if (bootstrap::is_managed()) link::other_locate = bootstrap::locate_through_manager;
    allow_threads(required);
    Lock lock;  // the progress thread runs from here on
    progress::start();
    level = required;
    main_thread = pthread_self();
    comm::make_predefined();
    comm::set_environment_info(static_cast<int>(job->segment().header().size), required);
    dynamic::start();
    phase = LibraryPhase::running;
    // The count comes first: parents take a process that is initialized and not counted for one that ended before it arrived.
    const bool last_here = dynamic::count_arrival();
    delay_at("between the arrival and the state");
    set_running();
    if (last_here) dynamic::notify_parents_of_arrival();
    return MPI_SUCCESS;
}

/// Returns whether all data that peers still expect from this process have been delivered. A send whose receiver has finalized without
/// receiving it is an error of the program and must not keep this process forever.
bool all_sent() {
    message::drop_sends_to_finalized();
    return message::open_sends() == 0 && multicast::all_delivered() && !link::anything_pending() && link::all_acknowledged();
}

constexpr progress::WaitSite kHandingOn{"MPI_Finalize (the profile)", progress::Expected::later};

/// Sends the last part of the profile; meanwhile this process still serves other processes. Called with the lock held.
void finish_profile() {
    profile::finish_recording();
    plan::report_run();
    progress::wait_until([] { return profile::handed_on() && plan::run_reported(); }, kHandingOn);
}

void stop() {
    {
        Lock lock;
        finish_profile();
        link::notify_finalized();
        progress::stop();
        set_finalized(true);
        phase = LibraryPhase::finalized;
    }
    bootstrap::leave_manager();
    comm::drop_predefined();
}

/// Stops the library after the last MPI session was closed: the program looks finalized but may open another session. No thread of the
/// library runs meanwhile, so the process may end.
void pause() {
    Lock lock;
    finish_profile();
    link::flush_transports();
    progress::stop();
    set_finalized(false);
}

void resume() {
    Lock lock;
    progress::start();
    set_running();
}

/// Removes a user, unless it is the last one and still has to wait for something; then returns false.
bool release_now(bool for_good) {
    const MutexGuard guard(life);
    if (users == 1) {
        Lock lock;
        if (!all_sent()) return false;
    }
    if (for_good) over = true;
    if (--users > 0) return true;
    if (over)
        stop();
    else
        pause();
    return true;
}

}  // namespace

void read_settings() {
    // The settings are read only once, so that a tool's later changes stay.
    STARLING_STATE static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, [] { read_config(reports_settings()); });
}

int acquire(int required) {
    const MutexGuard guard(life);
    if (phase == LibraryPhase::finalized)
        return fail(MPI_ERR_OTHER,
                    "MPI cannot be initialized again after MPI_Finalize; open an MPI session before MPI_Finalize, and close "
                    "the last one at the end");
    if (phase == LibraryPhase::before) {
        if (const int error = start(required)) return error;
    } else {
        allow_threads(required);
        if (users == 0) resume();
        if (required > level) level = required;
    }
    ++users;
    return MPI_SUCCESS;
}

void release(bool for_good) {
    // A forked child neither waits nor notifies its peers.
    if (is_forked_child()) {
        if (--users == 0) phase = LibraryPhase::finalized;
        return;
    }
    {
        Lock lock;
        message::announce_last_revocations();
        collective::announce_decisions();
    }
    // Other users may be added and removed meanwhile.
    while (!release_now(for_good)) {
        Lock lock;
        link::request_all_acks();
        progress::wait_until([] { return all_sent(); });
    }
}

int thread_level() { return level; }

bool is_main_thread() { return pthread_equal(pthread_self(), main_thread) != 0; }

bool is_forked_child() {
    const link::Process& me = link::self();
    return me.job && process != getpid();
}

namespace {

[[noreturn]] void end_all(int code, uint32_t how, int exit_code) {
    const link::Process& me = link::self();
    if (me.job) {
        job::RankCell& cell = me.job->segment().cell(me.rank);
        cell.abort_code.store(code);
        cell.aborted.store(how);
    }
    if (!threads_at_once()) profile::send_rest();  // not with several threads, because one of them may still be recording
    flush_output();
    bootstrap::abort_through_manager(code);
    _exit(exit_code);
}

}  // namespace

// Only the low eight bits reach the parent process; an abort must not look like success.
void abort(int code) { end_all(code, job::kAborted, (code & 0xff) != 0 ? code : 1); }

void abort_by_error(int code) { end_all(code, job::kEndedByError, code); }

void end_job(int code) { end_all(code, job::kEndedForAll, code); }

}  // namespace starling::runtime
