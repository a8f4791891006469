// Windows (MPI 5.0 chapter 12): memory that each process of a communicator exposes to all others, and the epochs in which they may access
// it.
//
// Not thread-safe: needs the library's lock.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/counter_start.h"
#include "base/handle.h"
#include "comm/attribute.h"
#include "comm/comm.h"
#include "comm/errhandler.h"
#include "comm/info.h"
#include "link/host_memory.h"
#include "message/request.h"
#include "rma/access.h"
#include "window/lock_table.h"
#include "window/remote_lock_server.h"

namespace starling::window {

/// Description of one process's part of a window, sent to all other processes when the window is created.
struct WindowInfo {
    uint64_t context;  ///< context id of the window's communicator; only rank 0's is used
    rma::RegionKey key;
    int64_t bytes;
    int64_t disp_unit;
    uint64_t base;           ///< address of the memory in the process that sends the info
    link::PagesName memory;  ///< name by which neighbours map the memory; not valid: they cannot map it
    uint64_t alignment;      ///< alignment of the memory as requested by the program; 0: any
    uint64_t board;          ///< address of the host's lock table in the shared heap; only set by the host's first process
    int64_t stage;           ///< area of the window's shared-memory stage; only set by rank 0; kNoArea: none
    int32_t flavor;
    int32_t error;         ///< error class of the process's arguments, or MPI_ERR_NO_MEM if it has no memory for its part
    int32_t system_error;  ///< errno value that is the reason of MPI_ERR_NO_MEM
};

/// A value of every process, stored once if all are equal.
class Column {
  public:
    void store(const std::vector<WindowInfo>& claims, uint64_t (*get)(const WindowInfo&));
    uint64_t at(int rank) const { return each_.empty() ? common_ : each_[static_cast<size_t>(rank)]; }

  private:
    uint64_t common_ = 0;
    std::vector<uint64_t> each_;
};

/// The stored parts of the window infos: for neighbours all fields, for other processes those that an access by packets needs.
class WindowInfoTable {
  public:
    /// Stores the infos. `neighbours` is in the order of ranks.
    void store(const std::vector<WindowInfo>& claims, const std::vector<int>& neighbours);
    int64_t bytes(int rank) const { return static_cast<int64_t>(bytes_.at(rank)); }
    int64_t disp_unit(int rank) const { return static_cast<int64_t>(disp_unit_.at(rank)); }
    rma::RegionKey key(int rank) const;
    /// Returns the info of the neighbour with that place (its number on this host).
    const WindowInfo& near(int place) const { return near_[static_cast<size_t>(place)]; }

  private:
    std::vector<WindowInfo> near_;
    Column bytes_, disp_unit_, key_bytes_, id_, secret_;
};

enum class LockHeld : uint8_t { no, shared, exclusive, unchecked };

/// A process (another one or this one) as a target of the window.
struct WindowTarget {
    rma::Target target;
    link::Pages pages;  ///< the target's memory, if it is mapped here
    std::optional<rma::UpdateLock> exclusion;
    int rank = 0;
    int64_t disp_unit = 1;
    uint64_t bytes = 0;
    bool mapped = false;           ///< whether the target's memory is mapped here and never moves
    int local = -1;                ///< the target's place in the lock table; -1: on another host
    LockHeld held = LockHeld::no;  ///< lock held by this process; MPI_Win_lock_all may acquire it only at the first access
    bool asking = false;           ///< whether a thread of this process is acquiring the target's lock
    // state of the lock request to a target on another host: whether it asks for an exclusive lock; whether the lock was granted
    bool requests_exclusive = false, granted = false;
    bool refused = false;            ///< whether the target answered that it has no such window
    uint32_t asked = kCounterStart;  ///< number of the last lock request
    bool in_group = false;           ///< whether the target is in the group of MPI_Win_start
};

/// Targets by rank, in rows of 64. A row in which no target was used is only a pointer, which is an eighth of a byte per target.
class Remotes {
  public:
    void resize(size_t processes) {
        size_ = processes;
        rows_.resize((processes + kRow - 1) / kRow);
    }
    size_t size() const { return size_; }
    WindowTarget* find(int rank) const {
        const auto& row = rows_[static_cast<size_t>(rank) / kRow];
        return row ? row[static_cast<size_t>(rank) % kRow].get() : nullptr;
    }
    std::unique_ptr<WindowTarget>& place(int rank) {
        auto& row = rows_[static_cast<size_t>(rank) / kRow];
        if (!row) row = std::make_unique<std::unique_ptr<WindowTarget>[]>(kRow);
        return row[static_cast<size_t>(rank) % kRow];
    }

  private:
    static constexpr size_t kRow = 64;
    size_t size_ = 0;
    std::vector<std::unique_ptr<std::unique_ptr<WindowTarget>[]>> rows_;
};

/// The access epoch that this process is in.
enum class Epoch : uint8_t { none, fence, started, locks, lock_all };

struct Window {
    static constexpr uint32_t kMagic = 0x57696e64;
    uint32_t magic = 0;
    uint32_t pool_index = 0;

    comm::Comm* comm = nullptr;  ///< the window's private communicator; reference held
    int flavor = MPI_WIN_FLAVOR_CREATE;
    int model = MPI_WIN_UNIFIED;
    void* base = nullptr;
    MPI_Aint bytes = 0;
    MPI_Aint disp_unit = 1;
    std::vector<uint64_t> offsets;  ///< offsets of the processes' parts in a shared window's memory
    int disp_unit_int = 1;          ///< displacement unit as an int, for MPI's attribute MPI_WIN_DISP_UNIT
    link::Pages pages;              ///< memory allocated for the window; the first process of a shared window has all of it
    void* plain = nullptr;          ///< memory from malloc, allocated for the window if neighbours cannot map it
    rma::RegionKey key;
    WindowInfoTable infos;
    Remotes remotes;  ///< targets by rank, created at the first use
    std::vector<WindowTarget*> used;

    std::vector<int> neighbours;  ///< ranks on this host, in order; an index is a place in the lock table
    int my_place = 0;
    std::byte* board_memory = nullptr;  ///< memory of the lock table, at the first process of the host; from rma::allocate()
    LockTable board;
    std::optional<rma::UpdateLock> exclusion;  ///< update lock of this process's memory

    Epoch epoch = Epoch::none;
    bool fence_used = false;                         ///< whether there was an access since the last fence
    int locked = 0;                                  ///< number of targets locked by MPI_Win_lock
    bool unchecked = false;                          ///< whether MPI_Win_lock_all was called with MPI_MODE_NOCHECK
    bool on_board = false;                           ///< whether MPI_Win_lock_all holds the locks of all processes of this host
    std::vector<WindowTarget*> group;                ///< targets of MPI_Win_start
    bool exposed = false;                            ///< whether MPI_Win_post was called, and MPI_Win_wait not yet
    std::list<message::ReceiveRequest> completions;  ///< receives of MPI_Win_complete's messages, after MPI_Win_post
    std::list<message::SendRequest> posts;           ///< messages of MPI_Win_post, which does not wait for them
    std::list<message::ReceiveRequest> late;         ///< receives that a failed epoch of MPI_Win_start or MPI_Win_post has left

    RemoteLockServer desk;     ///< server of locks to processes on other hosts
    bool awaits_ring = false;  ///< whether `desk` has pending requests, so that neighbours ring after releases
    uint32_t waiters = 0;      ///< number of threads that wait for locks in the lock table

    comm::Errhandler* errhandler = nullptr;  ///< error handler of the window; never null
    comm::AttributeSet attributes;
    std::string name;
    comm::Info info;  ///< hints given by the program

    int rank() const { return comm->rank; }
    int size() const { return comm->size; }
};

/// Arguments of make(), which MPI_Win_create and related functions fill in.
struct CreateParams {
    int flavor = MPI_WIN_FLAVOR_CREATE;
    void* base = nullptr;
    MPI_Aint bytes = 0;
    MPI_Aint disp_unit = 1;
    uint64_t alignment = 0;   ///< alignment of allocated memory; a power of two, or 0
    bool apart = false;       ///< whether each process's memory in a shared window begins a page
    int error = MPI_SUCCESS;  ///< error of this process's arguments, with failure_text()
};
int make(comm::Comm& comm, const CreateParams& wanted, Window*& made);
/// Frees the window, when its accesses, and those of other processes to it, are complete. Collective. Attributes must have been deleted.
int free(Window& window);

/// Returns the target of that rank, which the caller has checked; created at its first use.
WindowTarget& create_target(Window& window, int rank);
inline WindowTarget& get_or_create_target(Window& window, int rank) {
    WindowTarget* met = window.remotes.find(rank);
    return met ? *met : create_target(window, rank);
}

/// Returns where this process can access the target's memory by loads and stores; null if it cannot.
std::byte* address_of(const WindowTarget& remote);

/// Find windows by pool index, and by context id, which is the same in all processes.
Window* window_at(uint32_t pool_index);
Window* window_of(uint64_t context);
const std::vector<Window*>& windows();

/// Returns the window of a handle; nullptr for MPI_WIN_NULL and for freed or invalid handles.
inline Window* from_handle(MPI_Win handle) { return object_behind<Window>(handle); }
inline MPI_Win to_handle(Window* window) { return window ? reinterpret_cast<MPI_Win>(window) : MPI_WIN_NULL; }

}  // namespace starling::window
