// Windows (MPI 5.0 chapter 12): memory that each process of a communicator shows to all others, and the epochs in which they
// may use it.
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
#include "message/request.h"
#include "rma/access.h"
#include "transport/shm/pages.h"
#include "window/lock_table.h"
#include "window/remote_lock_server.h"

namespace starling::window {

/// What each process tells all others when a window is made.
struct WindowInfo {
    uint64_t context;  ///< of the window's communicator; rank 0's counts
    rma::RegionKey key;
    int64_t bytes;
    int64_t disp_unit;
    uint64_t base;          ///< the address there
    shm::PagesName memory;  ///< where neighbours can map it; not valid: they can't
    uint64_t alignment;     ///< that the program wants; 0: any
    uint64_t board;         ///< of the first process of its host: where the board is, in its memory for exchange
    int64_t stage;          ///< rank 0's: where the window's node stage is, if the communicator's is known to all
    int32_t flavor;
    int32_t error;  ///< what was wrong with its call, or MPI_ERR_NO_MEM
};

/// One number per process; kept once where all have the same.
class Column {
  public:
    void keep(const std::vector<WindowInfo>& claims, uint64_t (*get)(const WindowInfo&));
    uint64_t at(int rank) const { return each_.empty() ? common_ : each_[static_cast<size_t>(rank)]; }

  private:
    uint64_t common_ = 0;
    std::vector<uint64_t> each_;
};

/// What is kept of the claims: of neighbours all, of the others what an access by packets needs.
class WindowInfoTable {
  public:
    /// `neighbours` in order of their ranks.
    void keep(const std::vector<WindowInfo>& claims, const std::vector<int>& neighbours);
    int64_t bytes(int rank) const { return static_cast<int64_t>(bytes_.at(rank)); }
    int64_t disp_unit(int rank) const { return static_cast<int64_t>(disp_unit_.at(rank)); }
    rma::RegionKey key(int rank) const;
    /// Of the neighbour at that place.
    const WindowInfo& near(int place) const { return near_[static_cast<size_t>(place)]; }

  private:
    std::vector<WindowInfo> near_;
    Column bytes_, disp_unit_, key_bytes_, id_, secret_;
};

enum class LockHeld : uint8_t { no, shared, exclusive, unchecked };

/// Another process, or this one, as a target of the window.
struct Remote {
    rma::Target target;
    shm::Pages pages;  ///< its memory, if that is mapped here
    std::optional<rma::UpdateLock> exclusion;
    int rank = 0;
    int64_t disp_unit = 1;
    uint64_t bytes = 0;
    bool near = false;     ///< its memory is mapped here, and never moves
    int local = -1;        ///< its place on the board; -1: on another host
    LockHeld held = LockHeld::no;  ///< by MPI_Win_lock, or by MPI_Win_lock_all: since its first access, or at once (epoch.cpp)
    bool asking = false;   ///< a thread waits for its lock
    // Of its lock, if it is on another host:
    bool asks_exclusive = false, granted = false;
    bool refused = false;  ///< the target has no such window
    uint32_t asked = kCounterStart;  ///< number of the last ask
    bool in_group = false;           ///< of MPI_Win_start
};

/// Targets by rank. Of those that were never used it keeps an eighth of a byte each.
class Remotes {
  public:
    void resize(size_t processes) {
        size_ = processes;
        rows_.resize((processes + kRow - 1) / kRow);
    }
    size_t size() const { return size_; }
    Remote* find(int rank) const {
        const auto& row = rows_[static_cast<size_t>(rank) / kRow];
        return row ? row[static_cast<size_t>(rank) % kRow].get() : nullptr;
    }
    std::unique_ptr<Remote>& place(int rank) {
        auto& row = rows_[static_cast<size_t>(rank) / kRow];
        if (!row) row = std::make_unique<std::unique_ptr<Remote>[]>(kRow);
        return row[static_cast<size_t>(rank) % kRow];
    }

  private:
    static constexpr size_t kRow = 64;
    size_t size_ = 0;
    std::vector<std::unique_ptr<std::unique_ptr<Remote>[]>> rows_;
};

/// The epoch of accesses that this process is in.
enum class Epoch : uint8_t { none, fence, started, locks, lock_all };

struct Window {
    static constexpr uint32_t kMagic = 0x57696e64;
    uint32_t magic = 0;
    uint32_t pool_index = 0;

    comm::Comm* comm = nullptr;  ///< its own; reference held
    int flavor = MPI_WIN_FLAVOR_CREATE;
    int model = MPI_WIN_UNIFIED;
    void* base = nullptr;
    MPI_Aint bytes = 0;
    MPI_Aint disp_unit = 1;
    std::vector<uint64_t> offsets;  ///< shared: where each one's memory begins
    int disp_unit_int = 1;          ///< as the attribute shows it
    shm::Pages pages;               ///< memory that goes with the window; of a shared one, everybody's, at its first process
    void* plain = nullptr;          ///< the same where nobody can map it; from malloc
    rma::RegionKey key;
    WindowInfoTable kept;
    Remotes remotes;  ///< made at the first use
    std::vector<Remote*> used;

    std::vector<int> neighbours;  ///< the ranks on this host, in order: the places on the board
    int my_place = 0;
    std::byte* board_memory = nullptr;  ///< at the first process: from rma::allocate()
    LockTable board;
    std::optional<rma::UpdateLock> exclusion;  ///< of updates of the own memory

    Epoch epoch = Epoch::none;
    bool fence_used = false;                         ///< there was an access since the last fence
    int locked = 0;                                  ///< targets of MPI_Win_lock
    bool unchecked = false;                          ///< MPI_Win_lock_all with MPI_MODE_NOCHECK
    bool on_board = false;                           ///< MPI_Win_lock_all has the locks of all processes of this host
    std::vector<Remote*> group;                      ///< of MPI_Win_start
    bool exposed = false;                            ///< MPI_Win_post without its MPI_Win_wait
    std::list<message::ReceiveRequest> completions;  ///< of the processes it was posted to; empty, it takes no memory
    std::list<message::SendRequest> posts;           ///< to the same, under way since MPI_Win_post, which does not block

    RemoteLockServer desk;                 ///< for processes of other hosts
    bool awaits_ring = false;  ///< the desk has somebody pending, and neighbours have been told to ring
    uint32_t waiters = 0;      ///< threads that wait for locks on the board

    comm::Errhandler* errhandler = nullptr;  ///< never null
    comm::AttributeSet attributes;
    std::string name;
    comm::Info info;  ///< the hints that the program has given

    int rank() const { return comm->rank; }
    int size() const { return comm->size; }
};

/// What MPI_Win_create and its kin make; collective.
struct CreateParams {
    int flavor = MPI_WIN_FLAVOR_CREATE;
    void* base = nullptr;
    MPI_Aint bytes = 0;
    MPI_Aint disp_unit = 1;
    uint64_t alignment = 0;  ///< of the memory that is made; a power of two, or 0
    bool apart = false;      ///< shared: each one's memory begins a page
    int error =
        MPI_SUCCESS;  ///< of this process's arguments, with failure_text(): the others hear of it, and none makes a window
};
int make(comm::Comm& comm, const CreateParams& wanted, Window*& made);
/// All its accesses are over, and those of others to it: collective. Attributes must have been cleared.
int free(Window& window);

/// The target of that rank; the caller has checked it.
Remote& meet(Window& window, int rank);
inline Remote& remote(Window& window, int rank) {
    Remote* met = window.remotes.find(rank);
    return met ? *met : meet(window, rank);
}

/// Where this process reaches that one's memory by itself; null if it can't.
std::byte* address_of(const Remote& remote);

/// Windows by number, and by what names them everywhere.
Window* window_at(uint32_t pool_index);
Window* window_of(uint64_t context);
const std::vector<Window*>& windows();

/// The window behind a handle; nullptr for MPI_WIN_NULL, freed and never valid handles.
inline Window* from_handle(MPI_Win handle) { return object_behind<Window>(handle); }
inline MPI_Win to_handle(Window* window) { return window ? reinterpret_cast<MPI_Win>(window) : MPI_WIN_NULL; }

}  // namespace starling::window
