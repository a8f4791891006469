// What a process is as an OpenSHMEM PE: its symmetric memory, and that of the others as it is seen from here.
//
// Needs the library's lock.
#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/heap.h"
#include "base/state.h"
#include "job/doorbell.h"
#include "link/job.h"
#include "rma/access.h"
#include "shmem/runtime_abi.h"
#include "transport/shm/pages.h"

namespace starling::shmem {

struct Context;
struct Team;

/// The two stretches of symmetric memory: the heap, and the program's static and global variables. Also their places among
/// the known regions (rma/region.h).
enum class Area : uint8_t { heap = 0, data = 1 };

/// A place in symmetric memory, the same for all PEs.
struct Spot {
    Area area;
    uint64_t offset;
};

/// Another PE, or this one: comes into being at the first access.
struct Remote {
    link::Process process;
    bool near = false;                  ///< on this host
    std::byte* mapped[2] = {};          ///< where its areas lie in this process; null: only the owner reaches them
    shm::Pages heap, variables;         ///< of a neighbour
    rma::Target targets[2];             ///< of its areas
    pid_t pid = 0;                      ///< of a neighbour whose variables the kernel copies; 0: none
    uint64_t data = 0;                  ///< where its variables are there
    job::Doorbell* doorbell = nullptr;  ///< of a neighbour
    const std::atomic<uint32_t>* watching = nullptr;  ///< not 0: it waits for its memory to change

    rma::Target& target(Area area) { return targets[static_cast<size_t>(area)]; }
    bool busy() const { return targets[0].open != 0 || targets[1].open != 0; }
};

/// SHMEM_THREAD_MULTIPLE.
inline constexpr int kThreadMultiple = 3;

enum class Phase : uint8_t { before, running, finalized };

struct World {
    Phase phase = Phase::before;
    int me = 0, pes = 0;
    uint32_t starts = 0;  ///< how often it was initialized
    int level = 0;        ///< of threads, as OpenSHMEM numbers them

    shm::Pages pages;  ///< the heap
    Heap heap;
    uint64_t there = 0;  ///< bytes of it that the pages of all PEs have
    rma::RegionKey keys[2];
    std::byte* data = nullptr;  ///< the program's variables
    uint64_t data_bytes = 0;

    struct Free {
        void operator()(Remote** table) const { std::free(table); }
    };
    std::unique_ptr<Remote*[], Free> remotes;  ///< by PE; from calloc, so that of a large job only what is used is touched
    std::map<std::pair<uint64_t, uint32_t>, Remote*> foreign;  ///< of other jobs, by job and rank
    std::vector<std::unique_ptr<Remote>> met;                  ///< all of them
    std::vector<Remote*> reached;                              ///< those of them that the owner carries accesses out for
    std::vector<Remote*> stored;                               ///< neighbours with stores that they may wait for
    Team* everyone = nullptr;
    Team* sharing = nullptr;
};
extern Lazy<World> the_world;
inline World& world() { return the_world.get(); }

/// Takes the address space, finds the program's variables and lets others know. MPI_ERR_NO_MEM with failure_text().
int open_memory();
/// From now on who asks for it waits until it is opened again: all PEs do so before one of them may be initialized anew.
void hide_memory();
/// Nobody reaches it any more.
void close_memory();
/// So much of the heap has to be there for what is allocated; the same on all PEs.
uint64_t needed_heap();
/// It is there, in this PE. False if the system has no more.
bool grow_heap(uint64_t bytes);

/// Where an address of this process lies in symmetric memory; false if it does not, with all of the bytes. With STARLING_CHECK, also
/// where they are not all in one allocation.
bool locate(const void* address, uint64_t bytes, Spot& spot);
/// The same; ends the job if it does not. `what` as in "dest".
Spot located(const char* what, const void* address, uint64_t bytes);
/// Memory of this process.
std::byte* own_memory(const Spot& spot);

/// The PE by its number in the world, checked by the caller; of a process of another job. A neighbour that is not yet initialized is waited for.
Remote& remote_pe(int pe);
Remote& remote_process(const link::Process& process);
/// Where its memory can be reached by this process; null if it can't.
inline std::byte* mapped(const Remote& remote, const Spot& spot) {
    std::byte* base = remote.mapped[static_cast<size_t>(spot.area)];
    return base ? base + spot.offset : nullptr;
}
/// Blocks until `ready(argument)`, which looks at memory of this process that others change.
/// `site`: what is waited for, if it is more than that somebody changes it.
void wait_for_memory(bool (*ready)(void*), void* argument, const progress::WaitSite* site = nullptr);

/// There was a store into its mapped memory.
void note_store(Remote& remote);
/// Wakes those that were stored to, if they wait for that.
void wake_stored();
void wake(Remote& remote);

}  // namespace starling::shmem
