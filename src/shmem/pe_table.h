// The state of a process as an OpenSHMEM PE: its own symmetric memory, and its view of the other PEs' memory.
//
// All functions need the library's lock.
#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/free_deleter.h"
#include "base/heap.h"
#include "base/state.h"
#include "job/doorbell.h"
#include "link/host_memory.h"
#include "link/job.h"
#include "rma/access.h"
#include "shmem/runtime_abi.h"

namespace starling::shmem {

struct ShmemContext;
struct Team;

/// The two areas of symmetric memory: the heap, and the program's static and global variables. The values are also their numbers among the
/// known regions (rma/region.h).
enum class Area : uint8_t { heap = 0, data = 1 };

/// A location in symmetric memory, the same on all PEs.
struct Spot {
    Area area;
    uint64_t offset;
};

/// This process's view of a PE (possibly itself); created at the first access of the PE.
struct RemotePe {
    link::Process process;
    bool is_local = false;                            ///< whether the PE is on this host
    std::byte* mapped[2] = {};                        ///< addresses of the PE's areas in this process; null: not mapped
    link::Pages heap, variables;                      ///< mappings of a neighbor's memory
    rma::Target targets[2];                           ///< targets of accesses, per area
    pid_t pid = 0;                                    ///< pid of a neighbor whose variables the kernel copies; 0: none
    uint64_t data = 0;                                ///< address of the PE's variables in that process
    job::Doorbell* doorbell = nullptr;                ///< doorbell of a neighbor
    const std::atomic<uint32_t>* watching = nullptr;  ///< a neighbor's counter; not 0 while that PE waits for a store

    rma::Target& target(Area area) { return targets[static_cast<size_t>(area)]; }
    bool busy() const { return targets[0].open != 0 || targets[1].open != 0; }
};

/// The thread level SHMEM_THREAD_MULTIPLE as OpenSHMEM numbers it.
inline constexpr int kThreadMultiple = 3;

enum class ShmemPhase : uint8_t { before, running, finalized };

struct World {
    ShmemPhase phase = ShmemPhase::before;
    int me = 0, pes = 0;
    uint32_t starts = 0;  ///< number of initializations so far
    int level = 0;        ///< thread level, as OpenSHMEM numbers them

    link::Pages pages;  ///< memory of the heap in this process
    Heap heap;
    uint64_t there = 0;  ///< bytes of the heap for which all PEs have memory
    rma::RegionKey keys[2];
    std::byte* data = nullptr;  ///< the program's static and global variables in this process
    uint64_t data_bytes = 0;

    std::unique_ptr<RemotePe*[], FreeDeleter>
        remotes;  ///< PEs of this job, by number; from calloc, so a large job touches only the used part
    std::map<std::pair<uint64_t, uint32_t>, RemotePe*> foreign;  ///< PEs of other jobs, by job and rank
    std::vector<std::unique_ptr<RemotePe>> all_remotes;          ///< all entries of `remotes` and `foreign`
    /// PEs with an area that is not mapped in this process.
    std::vector<RemotePe*> reached;
    std::vector<RemotePe*> stored;  ///< neighbors that were stored to since they were last woken
    Team* everyone = nullptr;
    Team* sharing = nullptr;
};
extern Lazy<World> the_world;
inline World& world() { return the_world.get(); }

/// Reserves the heap's address space, finds the program's variables and publishes both. Returns MPI_ERR_NO_MEM with failure_text() on
/// failure.
int open_memory();
/// Marks the memory as unavailable. A PE of this job on this host that asks for it then waits until open_memory() publishes it again. All
/// PEs must have called this before any of them is initialized again.
void hide_memory();
/// Releases the memory. No process may access it any more.
void close_memory();
/// Returns the bytes of memory that the heap needs for its allocations; the same on all PEs.
uint64_t needed_heap();
/// Provides memory for `bytes` of the heap in this PE. Returns false if the system has not enough.
bool grow_heap(uint64_t bytes);

/// Finds an address of this process in symmetric memory. Returns false unless all of the bytes are in it; with STARLING_CHECK, unless they
/// are in one allocation.
bool locate(const void* address, uint64_t bytes, Spot& spot);
/// Finds the location of an address in symmetric memory as locate() does, and returns it; ends the job if there is none. `what` names the
/// argument in the error text, as in "dest".
Spot located(const char* what, const void* address, uint64_t bytes);
/// Returns the address of a location in this process's memory.
std::byte* own_memory(const Spot& spot);

/// Return the entry of a PE: remote_pe() by its number in this job, which the caller has checked, remote_process() for a process of any
/// job. Both create the entry at the first call. Creating the entry of another process on this host waits until that process has
/// initialized OpenSHMEM.
RemotePe& remote_pe(int pe);
RemotePe& remote_process(const link::Process& process);
/// Returns the address at which the location is mapped in this process; null if it is not.
inline std::byte* mapped(const RemotePe& remote, const Spot& spot) {
    std::byte* base = remote.mapped[static_cast<size_t>(spot.area)];
    return base ? base + spot.offset : nullptr;
}
/// Blocks until `ready(argument)` is true; it reads memory of this process that other PEs change. `site` describes the wait for the wait
/// report; null: any PE may end the wait.
void wait_for_memory(bool (*ready)(void*), void* argument, const progress::WaitSite* site = nullptr);

/// Records a store into a PE's mapped memory.
void note_store(RemotePe& remote);
/// Wakes all PEs whose memory was stored to and that wait for a change of it.
void wake_stored();
void wake(RemotePe& remote);

}  // namespace starling::shmem
