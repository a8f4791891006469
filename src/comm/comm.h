// Communicators: a context, one or two groups, and attached data (MPI 5.0 chapter 7). This file has the objects and local operations;
// creating new communicators from old ones takes messages and is in collective/communicator/creation.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/handle.h"
#include "comm/attribute.h"
#include "comm/errhandler.h"
#include "comm/group.h"
#include "comm/info.h"
#include "comm/neighborhood.h"
#include "comm/reference_guard.h"
#include "link/job.h"
#include "message/channel.h"
#include "message/revocation.h"
#include "mpi.h"

namespace starling::message {
class BsendBuffer;
}

namespace starling::comm {

/// The message spaces of one communicator, in the low four bits of a context id.
enum class Plane : uint32_t {
    point_to_point = 0,
    collective = 1,
    leaders = 3,      ///< messages of MPI_Intercomm_create between leaders over the peer communicator
    from_group = 4,   ///< messages of MPI_Comm_create_from_group and MPI_Comm_create_group, which belong to no communicator
    partitioned = 5,  ///< setup messages of partitioned senders, under the application's tag
    partitions = 6,   ///< partitions of partitioned communication, under tags that the sender chooses
};
inline constexpr uint64_t kPlaneMask = 15;
static_assert(static_cast<uint64_t>(Plane::collective) == message::kMembersPlane);

/// Returns the context id of the `number`th context drawn in a job, plane 0. The numbers of all jobs lie on one circle of 2^60; each job
/// uses consecutive ones from a random start, its id. So numbers of two jobs coincide about as rarely as two random numbers, however many
/// each has drawn.
constexpr uint64_t make_context(job::JobId job, uint64_t number) { return (job + number) << 4; }
/// Numbers of predefined contexts, the same in every process of a job. Numbers below 16 are never drawn.
inline constexpr uint64_t kWorldNumber = 1, kSelfNumber = 2;
/// Numbers of OpenSHMEM's contexts: of all PEs, and of those of one host.
inline constexpr uint64_t kShmemWorldNumber = 3, kShmemSharedNumber = 4;
/// The value in place of a context id if this host can draw no more. A process that draws a context id for others sends them this value,
/// and the creation fails on all.
inline constexpr uint64_t kNoContext = ~uint64_t{0};
/// Returns whether the context id was drawn. Predefined ids are not drawn, and are used again when a program initializes anew.
bool is_drawn(uint64_t context);
/// Draws a context id that is unique in the universe, from a counter in the header of this process's job segment. Lock-free.
uint64_t new_context();
/// Checks a drawn context id. Returns MPI_ERR_OTHER with failure_text() for kNoContext.
int check_context(uint64_t context);

/// The data that src/collective attaches to a communicator (its exchange, counters, shared-memory stage), created there at first use.
struct CollectiveState {
    virtual ~CollectiveState() = default;
    /// Called when the communicator was revoked: later operations fail.
    virtual void revoke() = 0;
};

/// The failed members of a communicator that this process knows, by their ranks in the collective match context.
struct KnownFailures {
    std::vector<int> ranks;   ///< in the order in which they were found; new ones are appended
    size_t acknowledged = 0;  ///< number of them, from the first on, that the program has acknowledged
};

/// A process topology; immutable and shared between a communicator and its duplicates.
struct Topology {
    virtual ~Topology() = default;
    virtual int kind() const = 0;  ///< MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH
};

/// The hints that the library knows. All are assertions of the application; none is needed for correctness.
struct Hints {
    bool no_any_tag = false, no_any_source = false, exact_length = false, allow_overtaking = false;
    /// Hint starling_connect: peers are worth a connection from the first message on this communicator.
    bool connect = false;
    /// Hint starling_multicast: how the communicator gets a multicast group; automatic: as STARLING_MULTICAST says.
    Multicast multicast = Multicast::automatic;
};

/// A communicator. The handle and every pending operation hold a reference, so that the communicator outlives MPI_Comm_free until they are
/// done. Not thread-safe: needs the library's lock.
struct Comm {
    uint32_t magic = 0;  ///< cleared by MPI_Comm_free: the handle is invalid, the object may still be in use
    uint32_t pool_index = 0;

  private:
    // The groups are declared before the channels, which refer to them; destroy() releases them last.
    Group* local_;
    Group* remote_;  ///< remote group; nullptr in an intra-communicator
    Group* all_;     ///< both groups, in the order on which all members agree; nullptr in an intra-communicator

  public:
    static constexpr uint32_t kMagic = 0x436f6d6d;

    const int rank;        ///< this process's rank in the local group
    const int size;        ///< size of the local group
    const int peer_count;  ///< size of the group that messages address: the remote group, if there is one
    const bool is_inter;
    /// whether the local group of an inter-communicator comes first in the common numbering of both groups, on which all members agree
    const bool local_first;
    bool disconnected = false;
    job::JobId spawned = 0;  ///< the job that was spawned with this inter-communicator; 0: not created by a spawn

    message::MatchContext point_to_point;  ///< match context of point-to-point messages, whose roster is peers()
    /// Match context of collective operations. Its roster is the group; in an inter-communicator both groups, in their common numbering,
    /// which my_rank() uses.
    message::MatchContext collective;
    std::unique_ptr<CollectiveState> collective_state;
    KnownFailures failures;
    /// Function called when this communicator was revoked, before its messages end. Set by the window or file that it belongs to; null: none.
    void (*on_revoked)(Comm&) = nullptr;

    Errhandler* errhandler;           ///< error handler of the communicator; never null
    bool errhandler_was_set = false;  ///< whether MPI_Comm_set_errhandler was called
    AttributeSet attributes;
    Hints hints;
    std::shared_ptr<const Topology> topology;  ///< process topology; null: none
    /// This process's edges in the topology; null: neighborhood_of() has not computed them yet.
    std::unique_ptr<const Neighborhood> neighborhood;
    std::string name;
    message::BsendBuffer* attached_buffer = nullptr;  ///< the buffer of MPI_Comm_attach_buffer, which owns it

    uint32_t references = 1;

    /// Constructs a communicator in which this process is the member `my_rank` of `local`. Takes over one reference of each group; retains
    /// `errhandler` (null: MPI_ERRORS_ARE_FATAL). A null `remote` makes an intra-communicator.
    Comm(uint64_t context, Group* local, int my_rank, Group* remote, bool local_first, Errhandler* errhandler);
    ~Comm();
    Comm(const Comm&) = delete;
    Comm& operator=(const Comm&) = delete;

    /// Returns the context id, which is unique among the communicators of a process; disjoint communicators of one split share it.
    uint64_t context() const { return point_to_point.context(); }
    Group& local_group() const { return *local_; }
    Group& remote_group() const { return *remote_; }  ///< remote group, of inter-communicators only
    /// Returns the group to which ranks of messages refer.
    Group& peers() const { return remote_ ? *remote_ : *local_; }
    /// Returns the channel of plane `leaders`, `partitioned` or `partitions`, created at first use and kept as long as the communicator.
    /// Its roster is peers().
    message::MatchContext& channel(Plane plane);

    void set_errhandler(Errhandler* handler);

    Comm* retain() {
        ++references;
        return this;
    }
    /// Drops one reference; the last one destroys the communicator.
    void release() {
        if (--references == 0) destroy();
    }

  private:
    void destroy();
    static constexpr uint32_t kFirstOther = 3, kOthers = 4;
    std::unique_ptr<message::MatchContext> others_[kOthers];  ///< channels by plane, from `leaders` on
};

/// Create a communicator in the pool; arguments as for the constructor.
Comm* make_intracomm(uint64_t context, Group* group, int my_rank, Errhandler* errhandler);
Comm* make_intercomm(uint64_t context, Group* local, int my_rank, Group* remote, bool local_first, Errhandler* errhandler);

/// The predefined communicators, indexed by handle - MPI_COMM_NULL; null before MPI_Init and after MPI_Finalize.
extern std::atomic<Comm*> predefined[4];  // atomic: an error may look for its handler while another thread initializes MPI
inline Comm* world() { return predefined[1].load(std::memory_order_acquire); }
inline Comm* self() { return predefined[2].load(std::memory_order_acquire); }

/// Drops the application's reference: the handle becomes invalid at once, the object lives until its last pending operation ends.
/// Attributes must have been cleared.
void drop(Comm* comm);

/// Creates the predefined communicators of this process (once, in MPI_Init, when link::self() is known).
void make_predefined();
/// Drops the predefined communicators, at the end of MPI_Finalize.
void drop_predefined();

/// Hook that MPI_Comm_disconnect calls before it destroys the communicator, when all members' communication has completed. Set by
/// src/dynamic.
extern void (*on_disconnect)(Comm&);

/// Returns the number of the application's live communicators, including the predefined ones.
std::size_t live_communicators();

Comm* comm_at(uint32_t pool_index);  ///< returns the communicator of MPI_Comm_fromint; nullptr if there is none

/// Returns the communicator of a handle; nullptr for MPI_COMM_NULL, for freed or invalid handles, and for all handles while MPI is not
/// initialized.
inline Comm* from_handle(MPI_Comm handle) {
    const auto word = reinterpret_cast<uintptr_t>(handle);
    if (word < kHandleLimit) {
        const uintptr_t slot = word - reinterpret_cast<uintptr_t>(MPI_COMM_NULL);
        return slot < 4 ? predefined[slot].load(std::memory_order_acquire) : nullptr;
    }
    return object_behind<Comm>(handle);
}
/// Returns the handle of a communicator; MPI_COMM_NULL for nullptr.
inline MPI_Comm to_handle(const Comm* comm) {
    if (!comm) return MPI_COMM_NULL;
    if (comm == world()) return MPI_COMM_WORLD;
    if (comm == self()) return MPI_COMM_SELF;
    return reinterpret_cast<MPI_Comm>(const_cast<Comm*>(comm));
}

}  // namespace starling::comm
