// Creation and destruction of windows.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/counters.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/no_destroy.h"
#include "base/page_size.h"
#include "base/pool.h"
#include "base/process.h"
#include "base/random.h"
#include "base/state.h"
#include "collective/agreement.h"
#include "collective/channel_exchange.h"
#include "collective/collective.h"
#include "collective/collective_request.h"
#include "collective/comm_call.h"
#include "link/host_memory.h"
#include "link/job.h"
#include "mpi-ext.h"
#include "progress/engine.h"
#include "rma/memory.h"
#include "window/epoch.h"
#include "window/lock.h"
#include "window/revocation.h"
#include "window/target_failures.h"
#include "window/window.h"

namespace starling::window {

namespace {

STARLING_STATE NoDestroy<Pool<Window>> window_pool_storage;
constinit auto& window_pool = window_pool_storage.value;
STARLING_STATE NoDestroy<std::vector<Window*>> windows_storage;
constinit auto& all_windows = windows_storage.value;

uint64_t to_pages(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

/// Sends this process's window info to all others and receives theirs.
int exchange(comm::Comm& comm, const WindowInfo& mine, std::vector<WindowInfo>& claims) {
    claims.resize(static_cast<size_t>(comm.size));
    const collective::Blocks blocks(claims.data(), sizeof(WindowInfo), collective::byte_type());
    collective::CommCall call(comm, true);
    return collective::run(call, collective::allgather(call, &mine, sizeof(WindowInfo), collective::byte_type(), blocks));
}

void abandon_stage(comm::Comm& comm, const std::vector<WindowInfo>& claims) {
    if (claims[0].stage != collective::kNoArea) collective::stage_of(comm).abandon_next(claims[0].stage);
}

/// Returns what the user can do about a failed allocation. Memory that neighbours can map is a file, so it needs a descriptor, and the limit
/// of file sizes applies.
const char* remedy_for(int system_error) {
    if (system_error == EMFILE || system_error == ENFILE) return "raise `ulimit -n`";
    if (system_error == EFBIG) return "raise `ulimit -f`";
    if (system_error == EACCES || system_error == EPERM)
        return "change a process's user or groups before MPI_Init, not after it";
    return "free memory, or request less";
}

/// Checks the window infos of all members. Returns the same error class on all members.
int check(const std::vector<WindowInfo>& claims, int flavor) {
    for (size_t rank = 0; rank < claims.size(); ++rank) {
        const int error = claims[rank].error;
        if (error == MPI_ERR_NO_MEM) {
            const int reason = claims[rank].system_error;
            return fail(error, "rank %zu cannot allocate its part of the window: %s; %s", rank, std::strerror(reason),
                        remedy_for(reason));
        }
        if (error) return fail(error, "rank %zu has passed invalid arguments; that process's error text names them", rank);
        if (claims[rank].flavor != flavor)
            return fail(MPI_ERR_RMA_FLAVOR, "rank %zu has called a different function to create the window", rank);
    }
    return comm::check_context(claims[0].context);
}

bool is_aligned(const link::Pages& pages, uint64_t alignment) {
    return reinterpret_cast<uintptr_t>(pages.data()) % std::max(kPage, alignment) == 0;
}

/// Allocates the window's memory, for MPI_Win_allocate. Returns false if there is not enough memory.
bool allocate(Window& window, uint64_t alignment) {
    if (window.flavor != MPI_WIN_FLAVOR_ALLOCATE || window.bytes == 0) return true;
    const auto bytes = to_pages(static_cast<uint64_t>(window.bytes));
    if (window.pages.make(bytes, alignment) && is_aligned(window.pages, alignment)) {
        window.base = window.pages.data();
        return true;
    }
    window.pages = link::Pages();
    // Fall back to memory for this process alone. Pages that neighbours can map need a file descriptor, and none may be free.
    if (posix_memalign(&window.plain, std::max(kPage, alignment), bytes) != 0) window.plain = nullptr;
    window.base = window.plain;
    return window.plain != nullptr;
}

void find_neighbours(Window& window, const comm::Group& group) {
    for (int rank = 0; rank < group.size(); ++rank) {
        if (rank == group.my_rank()) window.my_place = static_cast<int>(window.neighbours.size());
        if (link::on_this_host(group.at(rank))) window.neighbours.push_back(rank);
    }
}

uint64_t board_bytes(const Window& window) { return LockTable::bytes(static_cast<uint32_t>(window.neighbours.size())); }

bool make_board(Window& window) {
    if (window.my_place != 0) return true;
    window.board_memory = static_cast<std::byte*>(rma::allocate(board_bytes(window), alignof(rma::UpdateMark)));
    if (window.board_memory) std::memset(window.board_memory, 0, board_bytes(window));
    return window.board_memory != nullptr;
}

/// Returns the error if this process cannot map `what`, which `maker` has created; `system_error` is an errno value, or 0 if it is unknown.
/// A process that dies loses its descriptors a moment before its end is visible.
int not_mapped(const link::Process& maker, int rank, const char* what, int system_error) {
    for (int turns = 0; turns < 100; ++turns) {
        if (link::has_ended(maker) || neighbour_ended(static_cast<pid_t>(maker.job->segment().cell(maker.rank).pid)))
            return fail(MPI_ERR_PROC_ABORTED, "rank %d ended before %s, which it had created, was mapped", rank, what);
        usleep(1000);
    }
    if (system_error == 0) return fail(MPI_ERR_NO_MEM, "%s, which rank %d has created, cannot be mapped", what, rank);
    return fail(MPI_ERR_NO_MEM, "%s, which rank %d has created, cannot be mapped: %s; %s", what, rank,
                std::strerror(system_error), remedy_for(system_error));
}

/// Opens the lock table, which the first process of the host has created.
int open_board(Window& window, const comm::Group& group, const std::vector<WindowInfo>& claims) {
    const int maker = window.neighbours[0];
    std::byte* memory = window.board_memory;
    errno = 0;
    if (!memory)
        if (link::Peer* peer = group.at(maker).job->peer(group.at(maker).rank))
            memory = peer->shm_path.exchanged(claims[static_cast<size_t>(maker)].board, board_bytes(window));
    if (!memory) return not_mapped(group.at(maker), maker, "the window's lock table", errno);
    window.board = LockTable(memory, static_cast<uint32_t>(window.neighbours.size()));
    window.desk.open(window.board, static_cast<uint32_t>(window.my_place));
    return MPI_SUCCESS;
}

/// Computes where each process's part of a shared window begins, and the total length. Returns false if that exceeds the address space.
bool lay_out(Window& window, const std::vector<WindowInfo>& claims, bool apart, uint64_t& all, uint64_t& alignment) {
    constexpr uint64_t kMost = uint64_t{1} << 62;  // all sums below stay smaller than this, so parts do not overlap
    all = 0;
    alignment = kPage;
    for (const WindowInfo& claim : claims) {
        const uint64_t own = std::max(kPage, claim.alignment);
        if (static_cast<uint64_t>(claim.bytes) > kMost || own > kMost) return false;
        if (apart) all = (all + own - 1) / own * own;
        window.offsets.push_back(all);
        all += static_cast<uint64_t>(claim.bytes);
        alignment = std::max(alignment, own);
        if (all > kMost) return false;
    }
    all = std::max(to_pages(all), kPage);
    return true;
}

/// The memory of a shared window, as its first process publishes it; or the errno value for which it has none.
struct SharedPages {
    link::PagesName name;
    int system_error;
};

/// Creates and maps the memory of a shared window, in which the processes' parts follow each other. The first process allocates it. The
/// others allocate nothing before the last collective step.
int share(Window& window, comm::Comm& comm, const std::vector<WindowInfo>& claims, bool apart) {
    if (static_cast<int>(window.neighbours.size()) != comm.size)
        return fail(
            MPI_ERR_RMA_SHARED,
            "the communicator has processes on other hosts: use one from MPI_Comm_split_type with MPI_COMM_TYPE_SHARED");
    uint64_t all, alignment;
    if (!lay_out(window, claims, apart, all, alignment))
        return fail(MPI_ERR_SIZE, "the parts of the shared window together exceed the address space: request less memory");
    SharedPages made{};
    errno = ENOMEM;
    if (comm.rank == 0 && window.pages.make(all, alignment)) made.name = window.pages.name();
    if (comm.rank == 0) made.system_error = errno;
    collective::CommCall call(comm, true);
    if (const int error = collective::run(call, collective::bcast(call, &made, sizeof made, collective::byte_type(), 0)))
        return error;
    if (!made.name.valid())
        return fail(MPI_ERR_NO_MEM, "rank 0 cannot allocate the %llu bytes of the shared window: %s; %s",
                    static_cast<unsigned long long>(all), std::strerror(made.system_error), remedy_for(made.system_error));
    errno = 0;
    if (comm.rank != 0 && !(window.pages.open(made.name, all, all, alignment) && window.pages.show(all)))
        return not_mapped(comm.local_group().at(0), 0, "a shared window's memory", errno);
    if (!is_aligned(window.pages, alignment))
        return fail(MPI_ERR_NO_MEM, "cannot map a shared window at a multiple of %llu bytes",
                    static_cast<unsigned long long>(alignment));
    window.pages.put_into_dumps();
    window.base = window.pages.data() + window.offsets[static_cast<size_t>(comm.rank)];
    return MPI_SUCCESS;
}

void destroy(Window& window) {
    if (window.awaits_ring) progress::await_no_ring();
    rma::withdraw(window.key);
    if (std::erase(all_windows, &window)) --counters.windows;
    std::free(window.plain);
    if (window.comm) comm::drop(window.comm);
    window.errhandler->release();
    window_pool.destroy(&window);
}

/// Exposes the window's memory. A shared window exposes nothing, because all its processes map the memory.
void expose(Window& window) {
    if (window.flavor == MPI_WIN_FLAVOR_DYNAMIC)
        window.key = rma::expose_addresses();
    else
        window.key = rma::expose(window.base, window.flavor == MPI_WIN_FLAVOR_SHARED ? 0 : static_cast<uint64_t>(window.bytes));
}

/// Maps a neighbour's memory if that is possible, so that accesses do not involve the neighbour.
void map(Window& window, WindowTarget& remote, const WindowInfo& claim) {
    rma::Target& target = remote.target;
    const auto place = static_cast<uint32_t>(window.my_place);
    if (remote.rank != window.rank()) rma::watch(target, window.comm->local_group().at(remote.rank));
    if (remote.rank == window.rank()) {
        target.mapped = true;
        target.mapping = window.flavor == MPI_WIN_FLAVOR_DYNAMIC ? nullptr : static_cast<std::byte*>(window.base);
    } else if (window.flavor == MPI_WIN_FLAVOR_SHARED) {
        target.mapped = true;
        target.mapping = window.pages.data() + window.offsets[static_cast<size_t>(remote.rank)];
    } else if (claim.memory.valid() && remote.pages.open(claim.memory, to_pages(static_cast<uint64_t>(claim.bytes)))) {
        target.mapped = true;
        target.mapping = remote.pages.data();
    } else if (window.flavor == MPI_WIN_FLAVOR_CREATE && target.peer && claim.bytes > 0) {
        target.mapping = target.peer->shm_path.exchanged(claim.base, static_cast<uint64_t>(claim.bytes));
        target.mapped = target.mapping != nullptr;
    }
    if (!target.mapped && window.flavor != MPI_WIN_FLAVOR_DYNAMIC) {
        const link::Process process = window.comm->local_group().at(remote.rank);
        target.pid = link::pid_of(process);
        target.address = claim.base;
    }
    if (!target.mapped) return;
    target.exclusion = &remote.exclusion.emplace(window.board.exclusion(place, static_cast<uint32_t>(remote.local)));
}

}  // namespace

namespace {

/// Takes part in the creation for a process that cannot make a window, so that the others do not wait for it. Returns its error.
int refuse(comm::Comm& comm, const CreateParams& wanted) {
    const std::string why(failure_text());
    WindowInfo mine{};
    mine.context = comm::kNoContext;
    mine.flavor = wanted.flavor;
    mine.error = wanted.error;
    mine.system_error = ENOMEM;
    mine.stage = collective::kNoArea;
    std::vector<WindowInfo> claims;
    if (exchange(comm, mine, claims) == MPI_SUCCESS) abandon_stage(comm, claims);
    collective::agree(comm, wanted.error, "window");  // The other members call agree() too, and learn of the error by it.
    return fail(wanted.error, "%s", why.c_str());
}

/// Creates this process's part of the window and fills its window info.
void fill(Window& window, comm::Comm& comm, const CreateParams& wanted, WindowInfo& mine) {
    window.flavor = wanted.flavor;
    window.bytes = wanted.bytes;
    window.disp_unit = wanted.disp_unit;
    window.disp_unit_int = static_cast<int>(wanted.disp_unit);
    window.base = wanted.base;
    find_neighbours(window, comm.local_group());
    if (wanted.flavor == MPI_WIN_FLAVOR_SHARED) window.offsets.reserve(static_cast<size_t>(comm.size));
    if (comm.rank == 0) mine.context = comm::new_context();
    errno = ENOMEM;
    if (!allocate(window, wanted.alignment) || !make_board(window)) mine.error = MPI_ERR_NO_MEM;
    mine.system_error = errno;
    mine.memory = window.pages.name();
    mine.board = reinterpret_cast<uint64_t>(window.board_memory);
    expose(window);
    rma::await_secret(window.key);
    mine.key = window.key;
    if (comm.rank == 0) mine.key.secret = draw_random_number() | 1;
    mine.bytes = wanted.bytes;
    mine.disp_unit = wanted.disp_unit;
    mine.alignment = wanted.alignment;
    mine.base = reinterpret_cast<uint64_t>(window.base);
    mine.flavor = wanted.flavor;
    mine.stage = collective::stage_of(comm).allocate_next();
}

/// Creates the window object and fills this process's window info. Returns null if there is no memory for the object.
Window* begin(comm::Comm& comm, const CreateParams& wanted, WindowInfo& mine) {
    Window* window = nullptr;
    try {
        window = window_pool.create();
        window->errhandler = comm::errors_are_fatal()->retain();
        fill(*window, comm, wanted, mine);
    } catch (const std::bad_alloc&) {
        mine.error = MPI_ERR_NO_MEM;
        mine.system_error = ENOMEM;
    }
    return window;
}

/// Performs the steps after the exchange of window infos. A step may fail at some processes only, but each process performs all collective
/// steps.
int reach(Window& window, comm::Comm& comm, std::vector<WindowInfo>& claims, bool apart) try {
    delay_at("before a window is agreed on");
    const int error = open_board(window, comm.local_group(), claims);
    const int error_of_memory = window.flavor == MPI_WIN_FLAVOR_SHARED ? share(window, comm, claims, apart) : MPI_SUCCESS;
    if (error || error_of_memory) return error ? error : error_of_memory;
    window.comm = comm::make_intracomm(claims[0].context, comm.local_group().retain(), comm.rank, comm::errors_return());
    for (WindowInfo& claim : claims) claim.key.secret = claims[0].key.secret;
    window.infos.store(claims, window.neighbours);
    window.remotes.resize(static_cast<size_t>(comm.size));
    if (all_windows.size() == all_windows.capacity()) all_windows.reserve(2 * all_windows.size() + 8);
    return MPI_SUCCESS;
} catch (const std::bad_alloc&) { return fail(MPI_ERR_NO_MEM, "no memory for this process's data about the window"); }

}  // namespace

int make(comm::Comm& comm, const CreateParams& wanted, Window*& made) {
    if (wanted.error) return refuse(comm, wanted);
    listen_for_locks();
    watch_targets();
    const Making making;
    WindowInfo mine{};
    mine.context = comm::kNoContext;
    mine.stage = collective::kNoArea;
    Window* const window = begin(comm, wanted, mine);
    if (!window) return refuse(comm, {.flavor = wanted.flavor, .error = fail(MPI_ERR_NO_MEM, "no memory for a window")});
    std::vector<WindowInfo> claims;
    int error = exchange(comm, mine, claims);
    const bool told = !error;
    if (!error) error = check(claims, wanted.flavor);
    if (!error) error = reach(*window, comm, claims, wanted.apart);
    // All members must reach this agreement, even if an earlier step failed: some may have noticed a death in the exchange, and others not.
    error = collective::agree(comm, error, "window");
    if (error) {
        if (told) abandon_stage(comm, claims);
        // The lock table can be freed, because its use begins after the agreement. If a process has died, however, some members may believe
        // that all have agreed, and use it.
        if (told && error != MPI_ERR_PROC_ABORTED && window->board_memory) rma::free(window->board_memory);
        destroy(*window);
        return error;
    }
    const auto place = static_cast<uint32_t>(window->my_place);
    if (rma::Region* region = rma::find_region(window->key.id, window->key.secret))
        region->exclusion = &window->exclusion.emplace(window->board.exclusion(place, place));
    if (claims[0].stage != collective::kNoArea)
        collective::stage_of(*window->comm)
            .create_as(collective::stage_of(comm), *window->comm, collective::exchange_of(*window->comm), claims[0].stage);
    all_windows.push_back(window);
    end_accesses_at_revocation(*window);
    ++counters.windows;
    ++counters.windows_made;
    handle_stored_messages(*window);
    window->key = rma::open(window->key, claims[0].key.secret);
    if (static_cast<int>(window->neighbours.size()) < comm.size) progress::serve_other_hosts();
    made = window;
    return MPI_SUCCESS;
}

int free(Window& window) {
    const int error = last_barrier(window);
    if (error == MPIX_ERR_REVOKED) revoke(window);  // a member has learned of it earlier
    if (is_revoked(window)) leave_revoked(window);
    leave_epochs(window);
    delay_at("before a window's memory goes");
    // The lock table of a revoked window is kept, because members that do not know of the revocation yet use it.
    if (leave_board(window, error == MPI_SUCCESS && !is_revoked(window))) rma::free(window.board_memory);
    const int result = is_revoked(window) ? MPI_SUCCESS : error;
    destroy(window);
    return result;
}

WindowTarget& create_target(Window& window, int rank) {
    std::unique_ptr<WindowTarget>& place = window.remotes.place(rank);
    place = std::make_unique<WindowTarget>();
    place->rank = rank;
    place->disp_unit = window.infos.disp_unit(rank);
    place->bytes = static_cast<uint64_t>(window.infos.bytes(rank));
    place->target.key = window.infos.key(rank);
    place->target.peer = window.comm->point_to_point.peer(rank);
    const auto found = std::lower_bound(window.neighbours.begin(), window.neighbours.end(), rank);
    if (found != window.neighbours.end() && *found == rank) place->local = static_cast<int>(found - window.neighbours.begin());
    place->target.in_order = place->local < 0;
    if (place->local >= 0) map(window, *place, window.infos.near(place->local));
    place->mapped = place->target.mapped && place->target.peer && window.flavor != MPI_WIN_FLAVOR_DYNAMIC &&
                    !is_revoked(window) && !has_failed_mapped(*place);
    window.used.push_back(place.get());
    return *place;
}

std::byte* address_of(const WindowTarget& remote) { return remote.target.mapped ? remote.target.mapping : nullptr; }

Window* window_at(uint32_t pool_index) { return window_pool.at(pool_index); }

const std::vector<Window*>& windows() { return all_windows; }

Window* window_of(uint64_t context) {
    for (Window* window : all_windows)
        if (window->comm->context() == context) return window;
    return nullptr;
}

}  // namespace starling::window
