// Teams: PEs that run collectives together; and contexts: sets of accesses that complete separately.
//
// All functions need the library's lock.
#pragma once

#include <vector>

#include "base/pool.h"
#include "comm/comm.h"
#include "shmem/pe_table.h"
#include "shmem/runtime_abi.h"

namespace starling::shmem {

struct Team {
    static constexpr uint32_t kMagic = 0x5445616d;
    uint32_t magic = 0;
    uint32_t pool_index = 0;

    comm::Comm* comm;               ///< communicator of the team's PEs; the team holds a reference
    int32_t first = 0, stride = 1;  ///< first PE in the world, and stride; only if `regular`
    bool regular = true;
    int contexts = 0;                 ///< num_contexts of the team's configuration
    bool predefined = false;          ///< whether the program must not destroy the team
    uint64_t splits = 0;              ///< splits of the team so far; the same on all members
    std::vector<ShmemContext*> made;  ///< contexts created on the team

    explicit Team(comm::Comm* its_comm) : comm(its_comm) {}
    int size() const { return comm->size; }
    int rank() const { return comm->rank; }
    /// Returns the process that is PE `pe` of the team.
    link::Process at(int pe) const { return comm->local_group().at(pe); }
};

struct ShmemContext : ContextHead {
    static constexpr uint32_t kMagic = 0x43747874;
    uint32_t magic = 0;
    uint32_t pool_index = 0;
    Team* team = nullptr;
    std::atomic<uint32_t>* open = &own_open;  ///< counter of the context's accesses in progress
    std::atomic<uint32_t> own_open = 0;
};

/// Create a team of a group's processes, or of a communicator's. The context id must be the same on all members.
Team* make_team(comm::Group* group, uint64_t context);
Team* make_team(comm::Comm* comm);
/// Returns the context id of SHMEM_TEAM_WORLD or SHMEM_TEAM_SHARED; a different one after each initialization.
uint64_t predefined_context(uint64_t number);
void destroy_team(Team* team);

/// Returns the team behind a handle; null for SHMEM_TEAM_INVALID. Ends the job if the handle is invalid.
Team* team_or_null(void* handle);
/// Returns the team behind a handle; ends the job if the handle is invalid or SHMEM_TEAM_INVALID.
Team& team_of(void* handle);
void* handle_of(Team* team);

ShmemContext& context_of(void* handle);
ShmemContext& default_context();
/// Returns a PE of a context's team; ends the job if the team has no PE of that number.
RemotePe& remote_of(const ShmemContext& context, int pe);

/// Destroys all teams, those of active sets included, when OpenSHMEM is finalized.
void destroy_teams();

}  // namespace starling::shmem
