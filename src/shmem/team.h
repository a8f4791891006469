// Teams: PEs that do collectives together, and the contexts whose accesses are waited for apart.
//
// Needs the library's lock.
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

    comm::Comm* comm;               ///< its own; reference held
    int32_t first = 0, stride = 1;  ///< its PEs in the world, if they are all of this job and so regular
    bool regular = true;
    int contexts = 0;            ///< as its configuration wanted
    bool predefined = false;     ///< not the program's to destroy
    uint64_t splits = 0;         ///< called on it so far; all members count alike
    std::vector<Context*> made;  ///< contexts of it

    explicit Team(comm::Comm* its_comm) : comm(its_comm) {}
    int size() const { return comm->size; }
    int rank() const { return comm->rank; }
    /// The process that is PE `pe` of it.
    link::Process at(int pe) const { return comm->local_group().at(pe); }
};

struct Context : ContextHead {
    static constexpr uint32_t kMagic = 0x43747874;
    uint32_t magic = 0;
    uint32_t pool_index = 0;
    Team* team = nullptr;
    std::atomic<uint32_t>* open = &own_open;  ///< accesses under way
    std::atomic<uint32_t> own_open = 0;
};

/// A team of these processes, with a context id that all members work out alike: 0 of `number` ones is drawn.
Team* make_team(comm::Group* group, uint64_t context);
Team* make_team(comm::Comm* comm);
/// The context id of SHMEM_TEAM_WORLD and _SHARED, of each time that OpenSHMEM is initialized another.
uint64_t predefined_context(uint64_t number);
void destroy_team(Team* team);

/// The team behind a handle; ends the job where it is none. Null for SHMEM_TEAM_INVALID.
Team* team_or_null(void* handle);
/// The same, where there has to be one.
Team& team_of(void* handle);
void* handle_of(Team* team);

Context& context_of(void* handle);
Context& default_context();
/// The PE of a context's team; ends the job if there is none of that number.
Remote& remote_of(const Context& context, int pe);

/// Teams of active sets, and all others but the two that are always there: at the end.
void destroy_teams();

}  // namespace starling::shmem
