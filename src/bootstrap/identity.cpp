#include "bootstrap/identity.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "base/process.h"
#include "base/state.h"
#include "bootstrap/host_join.h"
#include "bootstrap/host_record.h"
#include "bootstrap/isolated_rank.h"
#include "bootstrap/manager.h"
#include "job/doorbell.h"
#include "job/environment.h"
#include "mpi.h"

namespace starling::bootstrap {

namespace {

constexpr const char* kPortKey = "port";

// Pauses between look-ups of one rank. They grow; they are needed because a manager may reply that it does not know a rank that is only
// late.
constexpr uint64_t kFirstPauseNs = 1'000'000, kLongestPauseNs = 100'000'000;

// How long a rank that has finalized waits for those of its host that have not called MPI_Init yet. A rank may never call it.
constexpr uint64_t kLateSeconds = 5;

/// A pending look-up of a rank's address.
struct ManagerLookup {
    enum LookupState : uint32_t { idle, asked, too_early };
    std::atomic<uint32_t> state = idle;  ///< set to too_early by the thread on which the manager answers
    uint64_t next = 0, pause = kFirstPauseNs;
};

/// The manager that started this process, and the pending look-ups. Created if there is a manager, and never freed, because PMIx's thread
/// may still access it when the process ends. Besides, a manager ends the job when its descriptor is closed, which must not happen before
/// this process has printed why it could not join.
struct Management {
    std::unique_ptr<bootstrap::Manager> manager;
    job::JobSegment* segment = nullptr;  ///< where the addresses found are written; set when this process's port is published
    uint32_t rank = 0;
    std::unordered_map<uint32_t, ManagerLookup> questions;  ///< pending look-ups, by rank
    bool left = false, aborted = false;
    pid_t owner = 0;  ///< pid of the rank; a forked child has another pid and is not the rank
};
STARLING_STATE Management* management = nullptr;

bool in_environment(const char* name) {
    const char* value = std::getenv(name);
    return value && *value;
}

bool pmix_is_there() { return in_environment("PMIX_NAMESPACE") && in_environment("PMIX_RANK"); }

int no_pmix() {
    return fail(MPI_ERR_OTHER,
                "this program was started by a PMIx process manager but cannot connect to it (%s); install "
                "OpenPMIx and build Starling with it, or set STARLING_PMI=none to run every process on its own",
                std::string(failure_text()).c_str());
}

// Finds the manager to use; null if there is none.
int find_manager(std::unique_ptr<bootstrap::Manager>& out) {
    const Pmi wish = config().pmi;
    if (wish == Pmi::none) return MPI_SUCCESS;
    const bool pmi = job::has_pmi_manager() && wish != Pmi::pmix;
    if ((wish == Pmi::automatic || wish == Pmi::pmix) && pmix_is_there()) {
        out = bootstrap::make_pmix_manager();
        if (!out && !pmi) return no_pmix();
    }
    // Slurm sets PMI_JOBID and supports both versions equally well. Hydra does not set it, and its PMI-2 lacks commands that its PMI-1 has.
    const bool two = wish == Pmi::pmi2 || (wish != Pmi::pmi1 && in_environment("PMI_JOBID"));
    if (!out && pmi) out = bootstrap::make_pmi_manager(two ? 2 : 1, wish == Pmi::pmi1 || wish == Pmi::pmi2);
    if (!out && in_environment("PMI_PORT") && wish != Pmi::pmix) {
        return fail(MPI_ERR_OTHER,
                    "the process manager expects connections at PMI_PORT=%s, which Starling does not support; start "
                    "without the manager's -pmi-port, or set STARLING_PMI=none to run every process on its own",
                    std::getenv("PMI_PORT"));
    }
    return MPI_SUCCESS;
}

// Hydra's proxies stop reading the ranks' output when they receive an abort, so the error text must be read before.
void abort_by_manager(int code, const char* text) {
    management->aborted = true;
    drain_output();
    management->manager->abort(code, text);
}

void wait_for_late_ranks(const job::JobHeader& header) {
    const uint64_t end = now_ns() + kLateSeconds * 1'000'000'000u;
    while (header.arrived.load(std::memory_order_relaxed) < header.local_ranks &&
           header.state.load() == job::JobState::running && now_ns() < end)
        usleep(1000);
}

// Exit handler. A program that used only MPI sessions has finalized when it closed the last one, but might have opened another, so it
// leaves the manager only here. A program that exits without finalizing is reported as failed. Most managers would take it for one that
// ends with code 0, and no other process would report why its job ends.
void leave_at_exit() {
    if (!management->segment || management->aborted) return;
    const job::RankState state = management->segment->cell(management->rank).state.load();
    if (state == job::RankState::finalized) leave_manager();
    if (state != job::RankState::initialized || management->owner != getpid()) return;
    char text[64];
    std::snprintf(text, sizeof text, "rank %u exits without calling MPI_Finalize", management->rank);
    std::fprintf(stderr, "starling: %s\n", text);
    flush_output();
    abort_by_manager(1, text);
    _exit(1);  // not 0, whatever the program passed to exit(): some managers check nothing else
}

// Returns whether a living rank has started this process, directly or indirectly (a worker of Python's multiprocessing, a solver). Such a
// process has inherited the rank's environment, but it is a singleton. In contrast, a process that the launcher has started beside the
// rank, through a shell, was meant to be that rank itself.
bool was_started_by_rank(const job::JobSegment& segment, const job::RankCell& cell) {
    const job::RankState state = cell.state.load();
    if (state != job::RankState::initialized && state != job::RankState::finalized) return false;
    const pid_t apart = cell.apart_pid.load();
    // From another PID namespace than the rank's, this process's ancestors are not visible. But the rank existed first, so it is taken for
    // an ancestor.
    if ((apart == 0) != knows_pids() || (apart != 0 && cell.apart_namespace != find_pid_namespace())) return true;
    const pid_t rank = apart != 0 ? apart : cell.pid.load();
    ProcessOrigin origin;
    for (pid_t pid = getpid(); find_origin(pid, origin) && origin.parent > 0; pid = origin.parent) {
        if (knows_pids() && origin.parent == segment.header().owner_pid) return false;
        if (origin.parent != rank) continue;
        const uint64_t started = cell.started.load();
        return find_origin(rank, origin) && (started == 0 || started == origin.start);
    }
    return rank != getpid() && !process_ended(rank);  // if the rank lives, a process between the rank and this one has ended
}

// Returns whether a rank has started another MPI's launcher, and that one this process. Starling's launcher hides the variables that it was
// itself started with.
bool has_nearer_launcher() {
    if (config().singleton == Singleton::allow || config().pmi == Pmi::none) return false;
    return pmix_is_there() || job::has_pmi_manager();
}

int make_world_of_one(uint32_t& rank, job::JobSegment& segment) {
    rank = 0;
    if (const int error = job::JobSegment::create(1, nullptr, 0, segment)) return error;
    set_launchers_pid_namespace(segment.header().pid_namespace);
    std::snprintf(segment.header().command, sizeof segment.header().command, "%s", program_invocation_short_name);
    return MPI_SUCCESS;
}

int join_managed(std::unique_ptr<bootstrap::Manager> found, uint32_t& rank, job::JobSegment& segment) {
    management = new Management;
    management->manager = std::move(found);
    management->owner = getpid();
    bootstrap::Manager& manager = *management->manager;
    bootstrap::ManagedJob job;
    if (const int error = manager.start(job)) return error;
    management->rank = rank = job.rank;
    bool taken;
    if (const int error = bootstrap::join_host(job, id_of(job, manager.protocol()), segment, taken)) {
        // A program that a rank has started is not that rank, so its failure must not end the job.
        if (taken) delete std::exchange(management, nullptr);
        if (!taken || !was_started_by_rank(segment, segment.cell(rank))) return error;
        segment = job::JobSegment();
        return make_world_of_one(rank, segment);
    }
    set_launchers_pid_namespace(segment.header().pid_namespace);
    if (config().verbose > 0) {
        std::fprintf(stderr, "starling: rank %u of %u, started by another manager, found by %s as %s on %zu host%s\n", job.rank,
                     job.size, manager.protocol(), job.name.c_str(), job.hosts.size(), job.hosts.size() == 1 ? "" : "s");
    }
    std::atexit(leave_at_exit);
    return MPI_SUCCESS;
}

// Two processes of this host may store the same record at the same time.
void store_record(job::JobSegment& segment, uint32_t rank, const bootstrap::HostRecord& record) {
    job::HostEntry& entry = segment.host(segment.host_of(rank));
    const std::atomic_ref<uint32_t> addresses(entry.addresses);
    if (addresses.load(std::memory_order_acquire) == 0) {
        entry.id = record.host.id;
        entry.key = record.host.key;
        std::memcpy(entry.name, record.host.name, sizeof entry.name);
        std::memcpy(entry.ipv4, record.host.ipv4, sizeof entry.ipv4);
        addresses.store(record.host.addresses, std::memory_order_release);
    }
    uint32_t none = 0;
    const job::PortWord word{record.port, job::PortWord::running};
    segment.port(rank).compare_exchange_strong(none, word.word(), std::memory_order_release);
}

// Marks a rank that has no address, so that other processes do not wait for it forever.
void mark_failed(job::JobSegment& segment, uint32_t rank) {
    uint32_t none = 0;
    const job::PortWord word{0, job::PortWord::failed};
    segment.port(rank).compare_exchange_strong(none, word.word(), std::memory_order_release);
}

// Handles the result of a look-up. Called on PMIx's thread or on the caller's.
void on_found(void* context, uint32_t rank, bootstrap::LookupOutcome outcome, std::string_view value) {
    job::JobSegment& segment = *management->segment;
    bootstrap::HostRecord record;
    if (outcome == bootstrap::LookupOutcome::too_early) {
        static_cast<ManagerLookup*>(context)->state.store(ManagerLookup::too_early, std::memory_order_release);
    } else if (outcome == bootstrap::LookupOutcome::found && decode(value, record)) {
        store_record(segment, rank, record);
    } else {
        mark_failed(segment, rank);
    }
    ring(*reinterpret_cast<job::Doorbell*>(segment.region(management->rank)));
}

void advance(ManagerLookup& question, job::JobSegment& segment, uint32_t rank) {
    switch (question.state.load(std::memory_order_acquire)) {
        case ManagerLookup::asked:
            return;
        case ManagerLookup::too_early:
            question.state.store(ManagerLookup::idle, std::memory_order_relaxed);
            question.next = now_ns() + question.pause;
            question.pause = std::min(2 * question.pause, kLongestPauseNs);
            return;
        default:
            break;
    }
    if (question.next != 0 && now_ns() < question.next) return;
    bool asked = false;
    question.state.store(ManagerLookup::asked, std::memory_order_relaxed);
    if (management->manager->lookup(rank, kPortKey, on_found, &question, asked) != MPI_SUCCESS)
        return mark_failed(segment, rank);
    if (!asked) question.state.store(ManagerLookup::idle, std::memory_order_relaxed);
}

int join_launched(const job::ProcessIdentity& identity, uint32_t& rank, job::JobSegment& segment) {
    if (const int error = job::JobSegment::open(identity.job, segment)) return error;
    set_launchers_pid_namespace(segment.header().pid_namespace);
    if (!was_started_by_rank(segment, segment.cell(identity.rank))) return MPI_SUCCESS;
    segment = job::JobSegment();
    return make_world_of_one(rank, segment);
}

}  // namespace

int join_job(uint32_t& rank, job::JobSegment& segment) {
    job::ProcessIdentity identity;
    if (const int error = job::read_identity(identity)) return error;
    rank = identity.rank;
    if (identity.launched && !has_nearer_launcher()) return join_launched(identity, rank, segment);
    std::unique_ptr<bootstrap::Manager> manager;
    if (const int error = find_manager(manager)) return error;
    if (manager) return join_managed(std::move(manager), rank, segment);
    if (config().pmi != Pmi::none && config().singleton != Singleton::allow)
        if (const int error = refuse_loneliness()) return error;
    return make_world_of_one(rank, segment);
}

int publish_port(job::JobSegment& segment) {
    if (!management) return MPI_SUCCESS;
    management->segment = &segment;
    if (segment.header().hosts < 2) return MPI_SUCCESS;
    const uint32_t rank = management->rank;
    const bootstrap::HostRecord record{segment.host(segment.header().my_host),
                                       job::PortWord::of(segment.port(rank).load()).port};
    if (record.host.addresses == 0 || record.port == 0) {
        return fail(MPI_ERR_OTHER, "rank %u has no network address that other hosts could use; bring an interface up", rank);
    }
    if (const int error = management->manager->put(kPortKey, encode(record))) return error;
    return management->manager->publish();
}

bool is_managed() { return management != nullptr; }

bool locate_through_manager(job::JobSegment& segment, uint32_t rank) {
    const std::atomic<uint32_t>& word = segment.port(rank);
    if (word.load(std::memory_order_acquire) == 0) advance(management->questions[rank], segment, rank);
    return word.load(std::memory_order_acquire) != 0;
}

void leave_manager() {
    if (!management || management->owner != getpid() || std::exchange(management->left, true)) return;
    bootstrap::Manager& manager = *management->manager;
    if (manager.waits_for_late() && management->segment) wait_for_late_ranks(management->segment->header());
    // An error is ignored: it means that the manager has ended.
    manager.leave();
}

void abort_through_manager(int code) {
    if (!management) return;
    char text[64];
    std::snprintf(text, sizeof text, "MPI_Abort by rank %u with code %d", management->rank, code);
    abort_by_manager(code, text);
}

}  // namespace starling::bootstrap
