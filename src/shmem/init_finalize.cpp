// Initialization and finalization of OpenSHMEM.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <new>

#include "base/config.h"
#include "base/error.h"
#include "base/mutex.h"
#include "base/process.h"
#include "base/state.h"
#include "runtime/error_abort.h"
#include "runtime/runtime.h"
#include "shmem/access.h"
#include "shmem/collective.h"
#include "shmem/connect_all.h"
#include "shmem/entry.h"
#include "shmem/settings.h"
#include "shmem/static_variables.h"

namespace starling::shmem {

extern "C" {
STARLING_STATE Near starling_shmem_near;
}

STARLING_STATE Lazy<World> the_world;

namespace {

/// Held while OpenSHMEM starts or stops. It must be taken before the library's lock, never while that is held.
STARLING_STATE Mutex life;

void print_error(const char* format, va_list arguments) {
    char text[1200];
    std::vsnprintf(text, sizeof text, format, arguments);
    const char* name = calling ? calling : "OpenSHMEM";
    if (world().pes > 0)
        std::fprintf(stderr, "starling: PE %d of %d: %s: %s\n", world().me, world().pes, name, text);
    else
        std::fprintf(stderr, "starling: %s: %s\n", name, text);
}

void open_entries() {
    Near& near = starling_shmem_near;
    const auto n = static_cast<size_t>(world().pes);
    near.heaps = static_cast<std::byte**>(std::calloc(n, sizeof(std::byte*)));
    near.watching = static_cast<const std::atomic<uint32_t>**>(std::calloc(n, sizeof(void*)));
    if (!near.heaps || !near.watching) complain("not enough memory for tables of %d PEs", world().pes);
    near.base = world().pages.data();
    near.checks = config().check;
    near.pes = static_cast<uint32_t>(n);
    near.heaps[world().me] = near.base;
}

void close_entries() {
    Near& near = starling_shmem_near;
    near.bytes.store(0);
    near.pes = 0;
    near.checks = false;
    std::free(near.heaps);
    std::free(near.watching);
    near.heaps = nullptr;
    near.watching = nullptr;
    near.base = nullptr;
}

/// Returns the PEs on this host, in ascending order.
comm::Group* neighbours() {
    const job::JobSegment& segment = link::self().job->segment();
    std::vector<uint32_t> ranks(segment.header().local_ranks);
    for (uint32_t i = 0; i < ranks.size(); ++i) ranks[i] = segment.local_rank(i);
    std::sort(ranks.begin(), ranks.end());
    comm::GroupBuilder builder;
    for (const uint32_t rank : ranks) builder.add(link::Process{link::self().job, rank});
    return builder.build();
}

void make_teams() {
    const link::Process& me = link::self();
    comm::GroupBuilder all;
    all.add(comm::GroupRun{me.job, 0, 1, world().pes});
    world().everyone = make_team(all.build(), predefined_context(comm::kShmemWorldNumber));
    world().sharing = make_team(neighbours(), predefined_context(comm::kShmemSharedNumber));
    world().everyone->comm->name = "SHMEM_TEAM_WORLD";
    world().sharing->comm->name = "SHMEM_TEAM_SHARED";
    world().everyone->predefined = world().sharing->predefined = true;
}

STARLING_STATE std::terminate_handler terminate_before = std::abort;

/// Ends the job after an uncaught exception: most functions have no result that could report it, and other PEs may wait for this one.
/// Programs do not catch the exceptions of these functions, so std::terminate() is called.
void end_of_exception() {
    std::set_terminate(terminate_before);
    try {
        if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
        complain("out of memory: this PE and its job end; provide more memory or use less");
    } catch (...) {}
    std::terminate();
}

int begin() {
    const Lock lock;
    // In a simulation several PEs run in one process, so the handler may be set already.
    if (const auto before = std::set_terminate(end_of_exception); before != end_of_exception) terminate_before = before;
    const link::Process& me = link::self();
    world().me = static_cast<int>(me.rank);
    world().pes = static_cast<int>(me.job->segment().header().size);
    ++world().starts;
    if (const int error = open_memory()) return error;
    open_entries();
    make_teams();
    world().phase = ShmemPhase::running;
    if (world().me == 0) print_requested();
    if (config().connect == Connect::all) connect_all();
    return MPI_SUCCESS;
}

void end() {
    const Lock lock;
    quiet_all();
    if (barrier(*world().everyone)) complain_of_failure();
    // No PE has an access in progress now. After the next barrier a fast PE may be initialized again and access memory while other PEs are
    // still finalizing. So the memory is hidden first, and the fast PE cannot find memory that is being freed.
    hide_memory();
    if (barrier(*world().everyone)) complain_of_failure();
    close_entries();
    destroy_teams();
    close_memory();
    std::set_terminate(terminate_before);
    world().phase = ShmemPhase::finalized;
}

}  // namespace

void complain(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_error(format, arguments);
    va_end(arguments);
    runtime::abort_by_error(1);
}

void complain_of_failure() { complain("%.*s", static_cast<int>(failure_text().size()), failure_text().data()); }

void mention(const char* format, ...) {
    if (config().verbose < 1 && !std::getenv("SHMEM_DEBUG") && !std::getenv("SMA_DEBUG")) return;
    va_list arguments;
    va_start(arguments, format);
    print_error(format, arguments);
    va_end(arguments);
}

ShmemCall::ShmemCall(const char* name) {
    calling = name;
    if (world().phase == ShmemPhase::running) [[likely]]
        return;
    complain(world().phase == ShmemPhase::before ? "OpenSHMEM is not initialized: call shmem_init first"
                                                 : "OpenSHMEM is finalized already");
}

extern "C" {

int starling_shmem_init(const char* name, int requested, int* provided) {
    calling = name;
    if (requested < 0 || requested > kThreadMultiple)
        complain("%d is not a thread level: use SHMEM_THREAD_SINGLE to SHMEM_THREAD_MULTIPLE", requested);
    const MutexGuard guard(life);
    if (world().phase == ShmemPhase::running) complain("OpenSHMEM is initialized already");
    constexpr int kLevels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    share_variables();  // Share the variables now, because that is possible only before the process has threads.
    if (runtime::acquire(kLevels[requested])) complain_of_failure();
    world().level = requested;
    if (begin()) complain_of_failure();
    if (provided) *provided = requested;
    return 0;
}

void starling_shmem_finalize(const char* name) {
    calling = name;
    const MutexGuard guard(life);
    if (world().phase != ShmemPhase::running)
        complain("OpenSHMEM is not initialized, or is finalized already: call shmem_init first");
    if (runtime::is_forked_child()) return;
    end();
    runtime::release(false);
}

void starling_shmem_global_exit(int status) { runtime::end_job(status); }

int starling_shmem_phase() { return static_cast<int>(world().phase); }
int starling_shmem_thread_level() { return world().level; }

int starling_shmem_my_pe(const char* name) {
    if (world().phase == ShmemPhase::before) ShmemCall call(name);
    return world().me;
}

int starling_shmem_n_pes(const char* name) {
    if (world().phase == ShmemPhase::before) ShmemCall call(name);
    return world().pes;
}

void* starling_shmem_ptr(const char* name, void* handle, const void* address, int pe) {
    const ShmemCall call(name);
    const Team* team = team_or_null(handle);
    Spot spot;
    if (!team || pe < 0 || pe >= team->size() || !locate(address, 0, spot)) return nullptr;
    return mapped(remote_process(team->at(pe)), spot);
}

int starling_shmem_accessible(const char* name, const void* address, int pe) {
    const ShmemCall call(name);
    Spot spot;
    return pe >= 0 && pe < world().pes && (!address || locate(address, 0, spot));
}

void starling_shmem_complain(const char* name, const char* why) {
    calling = name;
    complain("%s", why);
}
}  // extern "C"

}  // namespace starling::shmem
