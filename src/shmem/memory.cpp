// This PE's symmetric memory: the heap, and the program's static variables.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/config.h"
#include "base/counters.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/page_size.h"
#include "link/host_memory.h"
#include "mpi.h"
#include "progress/engine.h"
#include "rma/region.h"
#include "shmem/entry.h"
#include "shmem/pe_table.h"
#include "shmem/settings.h"
#include "shmem/static_variables.h"

namespace starling::shmem {

namespace {

/// Computes the secret of a region key. Every process that can open this job's segment can compute it, so keys need not be exchanged. The
/// secret does not protect from other processes: datagrams must contain their receiver's key anyway.
uint64_t secret_of(const link::Process& process, Area area) {
    uint64_t z =
        process.job->address().id + (uint64_t{process.rank} * 2 + static_cast<uint64_t>(area) + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

rma::RegionKey key_of(const link::Process& process, Area area, uint64_t bytes) {
    return rma::known_key(static_cast<uint32_t>(area), secret_of(process, area), bytes);
}

void publish() {
    const link::Process& me = link::self();
    link::SymmetricMemory& shown = link::SegmentRegion(me.job->segment().region(me.rank)).symmetric();
    const link::PagesName& name = world().pages.name();
    shown.descriptor = name.descriptor;
    shown.inode = name.inode;
    shown.limit = world().heap.limit();
    shown.data = reinterpret_cast<uintptr_t>(world().data);
    shown.data_bytes = world().data_bytes;
    publish_variables();
    shown.data_descriptor = variables().name.descriptor;
    shown.data_inode = variables().name.inode;
    delay_at("before a heap is shown");
    shown.ready.store(link::SymmetricMemory::kReady);
}

bool has_terminated(const link::Process& process) {
    return link::has_ended(process) || process.job->segment().cell(process.rank).state.load() >= job::RankState::exited;
}

/// Returns a neighbor's description of its memory; waits until the neighbor is initialized, because this PE may ask first. A PE of this job
/// that has finalized will initialize again, as this PE has done. A PE of another job will not, so that is an error.
const link::SymmetricMemory& published_by(const link::Process& process) {
    link::SymmetricMemory& shown = link::SegmentRegion(process.job->segment().region(process.rank)).symmetric();
    const bool of_this_job = process.job == link::self().job;
    constexpr progress::WaitSite kInit{nullptr, progress::Expected::unrung};
    const auto settled = [&] {
        const uint32_t ready = shown.ready.load();
        return ready == link::SymmetricMemory::kReady || (ready == link::SymmetricMemory::kGone && !of_this_job) ||
               has_terminated(process);
    };
    progress::wait_until(settled, kInit);
    if (shown.ready.load() == link::SymmetricMemory::kReady) return shown;
    complain("PE %u has %s: its memory cannot be accessed", process.rank,
             shown.ready.load() == link::SymmetricMemory::kGone ? "called shmem_finalize already" : "ended without shmem_init");
}

void map_own(RemotePe& remote) {
    remote.mapped[0] = world().pages.data();
    remote.mapped[1] = world().data;
}

void map_neighbour(RemotePe& remote) {
    const link::SymmetricMemory& shown = published_by(remote.process);
    job::RankCell& cell = remote.process.job->segment().cell(remote.process.rank);
    // The pid is unknown if the process has its own PID namespace; the launcher then has the descriptors of its memory.
    const pid_t pid = cell.apart_pid.load() == 0 ? cell.pid.load() : 0;
    const link::PagesName name{pid, shown.descriptor, shown.inode};
    // Heaps of PEs of this job grow together. A heap of another job grows independently, so all of it is mapped.
    const uint64_t there = remote.process.job == link::self().job ? world().pages.shown() : shown.limit;
    if (remote.heap.open(name, 0, shown.limit) && remote.heap.show(there)) remote.mapped[0] = remote.heap.data();
    remote.doorbell = &link::SegmentRegion(remote.process.job->segment().region(remote.process.rank)).doorbell();
    remote.watching = &shown.watching;
    if (shown.data_bytes != world().data_bytes) return;
    remote.pid = link::pid_of(remote.process);
    remote.data = shown.data;
    const link::PagesName variables{pid, shown.data_descriptor, shown.data_inode};
    const uint64_t offset = StaticVariables::offset_of(shown.data);
    if (variables.valid() && remote.variables.open(variables, offset + shown.data_bytes))
        remote.mapped[1] = remote.variables.data() + offset;
}

std::unique_ptr<RemotePe> create_remote(const link::Process& process) {
    if (process.job->map()) complain_of_failure();
    auto remote = std::make_unique<RemotePe>();
    remote->process = process;
    remote->is_local = link::on_this_host(process);
    for (const Area area : {Area::heap, Area::data}) remote->target(area).key = key_of(process, area, 0);
    if (process != link::self())
        for (rma::Target& target : remote->targets) rma::watch(target, process);
    if (process == link::self())
        map_own(*remote);
    else if (remote->is_local)
        map_neighbour(*remote);
    if (remote->mapped[0] && remote->mapped[1]) return remote;
    link::Peer* peer = process.job->peer(process.rank);
    if (!peer) complain_of_failure();
    for (rma::Target& target : remote->targets) target.peer = peer;
    return remote;
}

/// Stores a new entry, unless another thread has stored one first.
RemotePe& settle(RemotePe*& place, std::unique_ptr<RemotePe> met) {
    if (place) return *place;
    place = world().all_remotes.emplace_back(std::move(met)).get();
    if (place->process != link::self()) ++counters.pes_accessed;
    if (place->targets[0].peer) world().reached.push_back(place);
    return *place;
}

}  // namespace

int open_memory() {
    uint64_t limit;
    if (const int error = heap_limit(limit)) return error;
    world().heap = Heap(limit);
    world().there = 0;
    // Offsets in the heap are aligned. Addresses are too, because the heap begins at a multiple of a power of two that is at least its
    // size.
    if (!world().pages.reserve(world().heap.limit(), std::bit_ceil(world().heap.limit())))
        return fail(MPI_ERR_NO_MEM,
                    "no address space for a symmetric heap of up to %llu bytes: set SHMEM_SYMMETRIC_SIZE to less",
                    static_cast<unsigned long long>(limit));
    madvise(world().pages.data(), world().heap.limit(), MADV_HUGEPAGE);
    world().data = variables().first;
    world().data_bytes = variables().bytes;
    const link::Process& me = link::self();
    world().keys[0] = key_of(me, Area::heap, 0);
    world().keys[1] = key_of(me, Area::data, world().data_bytes);
    rma::expose_known(world().keys[0], world().pages.data());
    rma::expose_known(world().keys[1], world().data);
    world().remotes.reset(static_cast<RemotePe**>(std::calloc(static_cast<size_t>(world().pes), sizeof(RemotePe*))));
    if (!world().remotes) return fail(MPI_ERR_NO_MEM, "not enough memory for a table of %d PEs", world().pes);
    publish();
    return MPI_SUCCESS;
}

void hide_memory() {
    const link::Process& me = link::self();
    link::SegmentRegion(me.job->segment().region(me.rank)).symmetric().ready.store(link::SymmetricMemory::kGone);
    delay_at("heap hidden");
    for (const rma::RegionKey& key : world().keys) rma::withdraw(key);
}

void close_memory() {
    world().reached.clear();
    world().stored.clear();
    world().remotes.reset();
    world().foreign.clear();
    world().all_remotes.clear();
    world().pages = link::Pages();
    world().heap = Heap();
}

uint64_t needed_heap() { return (world().heap.high_water() + kHugePage - 1) / kHugePage * kHugePage; }

bool grow_heap(uint64_t bytes) {
    bytes = std::min(bytes, (world().heap.limit() + kPage - 1) / kPage * kPage);
    if (!world().pages.grow(bytes)) return false;
    for (const std::unique_ptr<RemotePe>& remote : world().all_remotes)
        if (remote->heap.data() && !remote->heap.show(bytes)) return false;
    rma::resize(world().keys[0], std::min(bytes, world().heap.limit()));
    return true;
}

bool locate(const void* address, uint64_t bytes, Spot& spot) {
    const auto at = reinterpret_cast<uintptr_t>(address);
    const auto base = reinterpret_cast<uintptr_t>(world().pages.data());
    const uint64_t into = at - base, high = world().heap.high_water();
    if (into < high && bytes <= high - into) {
        spot = {Area::heap, into};
        return !config().check || world().heap.holds(into, bytes);
    }
    const uint64_t offset = at - reinterpret_cast<uintptr_t>(world().data);
    spot = {Area::data, offset};
    return offset < world().data_bytes && bytes <= world().data_bytes - offset;
}

Spot located(const char* what, const void* address, uint64_t bytes) {
    Spot spot;
    if (locate(address, bytes, spot)) [[likely]]
        return spot;
    const auto into = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(world().pages.data());
    if (into < world().heap.limit())
        complain("%s, %llu bytes at %p, is not all in allocated symmetric memory (offset %llu of the heap)", what,
                 static_cast<unsigned long long>(bytes), address, static_cast<unsigned long long>(into));
    complain(
        "%s, %llu bytes at %p, is not symmetric: it is neither from shmem_malloc nor a static or global variable of the "
        "program",
        what, static_cast<unsigned long long>(bytes), address);
}

std::byte* own_memory(const Spot& spot) {
    return (spot.area == Area::heap ? world().pages.data() : world().data) + spot.offset;
}

RemotePe& remote_pe(int pe) {
    RemotePe*& place = world().remotes[static_cast<size_t>(pe)];
    if (place) [[likely]]
        return *place;
    settle(place, create_remote({link::self().job, static_cast<uint32_t>(pe)}));
    Near& near = starling_shmem_near;
    if (place->watching) near.watching[pe] = place->watching;
    if (place->mapped[0]) __atomic_store_n(&near.heaps[pe], place->mapped[0], __ATOMIC_RELEASE);
    return *place;
}

RemotePe& remote_process(const link::Process& process) {
    if (process.job == link::self().job) return remote_pe(static_cast<int>(process.rank));
    RemotePe*& place = world().foreign[{process.job->address().id, process.rank}];
    return place ? *place : settle(place, create_remote(process));
}

void note_store(RemotePe& remote) {
    if (!remote.doorbell) return;
    if (std::find(world().stored.begin(), world().stored.end(), &remote) == world().stored.end())
        world().stored.push_back(&remote);
}

void wake(RemotePe& remote) {
    if (remote.watching && remote.watching->load(std::memory_order_relaxed) != 0) job::ring(*remote.doorbell);
}

void wake_stored() {
    // With several threads, a thread that finds its PE in `stored` may have a store in progress that the fence below does not cover. So the
    // list is kept, and that thread's own quiet wakes the PE.
    const bool forget = world().level != kThreadMultiple;
    if (forget) starling_shmem_near.stored.store(-1, std::memory_order_relaxed);
    // The fence makes all stores visible before any later load, for this PE's memory too. A PE that is about to wait first sets `watching`
    // and then checks its memory again. So either that PE sees the store, or this one sees `watching`.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    for (RemotePe* remote : world().stored) wake(*remote);
    if (forget) world().stored.clear();
}

}  // namespace starling::shmem
