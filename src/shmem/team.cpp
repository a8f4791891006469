#include "shmem/team.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "base/hash.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "shmem/access.h"
#include "shmem/collective.h"
#include "shmem/entry.h"

namespace starling::shmem {

namespace {

STARLING_STATE NoDestroy<Pool<Team>> team_pool_storage;
constinit auto& teams = team_pool_storage.value;
STARLING_STATE NoDestroy<Pool<ShmemContext>> context_pool_storage;
constinit auto& contexts = context_pool_storage.value;
STARLING_STATE NoDestroy<ShmemContext> default_storage;
constinit auto& the_default = default_storage.value;
STARLING_STATE NoDestroy<std::vector<Team*>> all_teams_storage;
constinit auto& all_teams = all_teams_storage.value;

using ActiveSets = std::map<std::tuple<int, int, int>, Team*>;
STARLING_STATE ActiveSets* active_sets = nullptr;

enum class TeamKind : uint8_t { strided, x, y, active_set, predefined };

uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/// Computes a context id that is the same for all PEs which make the same call, and differs from other ids except with a probability of
/// 2^-60. All teams that one call makes have the same id, since no PE is in two of them.
uint64_t context_of_call(uint64_t parent, TeamKind kind, uint64_t call) {
    uint64_t hash = hash_on(kEmptyHash, world().starts);
    for (const uint64_t word : {parent, static_cast<uint64_t>(kind), call}) hash = mix(hash_on(hash, word));
    return hash << 4;
}

/// Records whether the team's PEs are all of this job at a constant stride.
void note_shape(Team& team) {
    const auto runs = team.comm->local_group().runs();
    team.regular = runs.size() == 1 && runs[0].job == link::self().job;
    if (!team.regular) return;
    team.first = runs[0].first;
    team.stride = runs[0].stride;
}

Team* sub_team(Team& parent, TeamKind kind, uint64_t call, int start, int stride, int size, int wanted) {
    comm::GroupBuilder builder;
    builder.add_slice(parent.comm->local_group(), start, stride, size);
    Team* made = make_team(builder.build(), context_of_call(parent.comm->context(), kind, call));
    made->contexts = wanted;
    return made;
}

bool is_member(int pe, int start, int stride, int size) {
    if (stride == 0) return pe == start;
    const int distance = pe - start;
    return distance % stride == 0 && distance / stride >= 0 && distance / stride < size;
}

}  // namespace

// Each initialization gets different ids: a late message of the previous one must not be received in the next, where other PEs may be
// already.
uint64_t predefined_context(uint64_t number) {
    const uint64_t first = comm::make_context(link::self().job->address().id, number);
    return world().starts == 1 ? first : context_of_call(first, TeamKind::predefined, number);
}

Team* make_team(comm::Comm* comm) {
    Team* team = teams.create(comm);
    note_shape(*team);
    all_teams.push_back(team);
    return team;
}

Team* make_team(comm::Group* group, uint64_t context) {
    const int rank = group->my_rank();
    return make_team(comm::make_intracomm(context, group, rank, comm::errors_return()));
}

void destroy_team(Team* team) {
    while (!team->made.empty()) {
        ShmemContext* context = team->made.back();
        quiet(*context);
        team->made.pop_back();
        contexts.destroy(context);
    }
    std::erase(all_teams, team);
    comm::drop(team->comm);
    teams.destroy(team);
}

void destroy_teams() {
    while (!all_teams.empty()) destroy_team(all_teams.back());
    if (active_sets) active_sets->clear();
    world().everyone = world().sharing = nullptr;
}

Team* team_or_null(void* handle) {
    const auto word = reinterpret_cast<uintptr_t>(handle);
    if (word == kWorldTeam) return world().everyone;
    if (word == kSharedTeam) return world().sharing;
    if (word == 0) return nullptr;
    if (Team* team = object_behind<Team>(static_cast<Team*>(handle))) return team;
    complain("%p is not a team; was it destroyed?", handle);
}

Team& team_of(void* handle) {
    if (Team* team = team_or_null(handle)) return *team;
    complain("the team is SHMEM_TEAM_INVALID");
}

void* handle_of(Team* team) {
    if (team == world().everyone) return reinterpret_cast<void*>(kWorldTeam);
    if (team == world().sharing) return reinterpret_cast<void*>(kSharedTeam);
    return team;
}

ShmemContext& default_context() {
    the_default.open = &starling_shmem_near.open;
    the_default.team = world().everyone;
    return the_default;
}

ShmemContext& context_of(void* handle) {
    const auto word = reinterpret_cast<uintptr_t>(handle);
    if (word == kDefaultContext) return default_context();
    if (word == 0) complain("the context is SHMEM_CTX_INVALID");
    // A handle is the address of a ContextHead, the base class of ShmemContext, and so also the address of the context.
    if (ShmemContext* context = object_behind<ShmemContext>(static_cast<ShmemContext*>(handle))) return *context;
    complain("%p is not a context; was it destroyed?", handle);
}

RemotePe& remote_of(const ShmemContext& context, int pe) {
    const Team& team = *context.team;
    if (pe < 0 || pe >= team.size()) complain("PE %d is not in a team of %d PEs", pe, team.size());
    if (team.regular) return remote_pe(team.first + pe * team.stride);
    return remote_process(team.at(pe));
}

extern "C" {

int starling_shmem_team_split(const char* name, void* handle, int start, int stride, int size, int wanted, void** made) {
    const ShmemCall call(name);
    *made = nullptr;
    Team* parent = team_or_null(handle);
    if (!parent) return 1;
    check_alike(*parent, "the first PE", start);
    check_alike(*parent, "the stride", stride);
    check_alike(*parent, "the number of PEs", size);
    const uint64_t number = ++parent->splits;
    const int64_t last = start + int64_t{stride} * (size - 1);
    if (size < 1 || start < 0 || start >= parent->size() || last < 0 || last >= parent->size() || (stride == 0 && size > 1)) {
        mention("%s: first PE %d, stride %d and size %d do not fit in a team of %d PEs", name, start, stride, size,
                parent->size());
        return 1;
    }
    if (!is_member(parent->rank(), start, stride, size)) return 0;
    *made = sub_team(*parent, TeamKind::strided, number, start, size == 1 ? 1 : stride, size, wanted);
    return 0;
}

int starling_shmem_team_split_2d(const char* name, void* handle, int xrange, int x_contexts, void** x, int y_contexts,
                                 void** y) {
    const ShmemCall call(name);
    *x = *y = nullptr;
    Team* parent = team_or_null(handle);
    if (!parent) return 1;
    check_alike(*parent, "xrange", xrange);
    if (xrange < 1) return 1;
    const uint64_t number = ++parent->splits;
    const int n = parent->size(), me = parent->rank();
    xrange = std::min(xrange, n);
    const int row = me / xrange * xrange, column = me % xrange;
    *x = sub_team(*parent, TeamKind::x, number, row, 1, std::min(xrange, n - row), x_contexts);
    *y = sub_team(*parent, TeamKind::y, number, column, xrange, (n - column + xrange - 1) / xrange, y_contexts);
    return 0;
}

void starling_shmem_team_destroy(const char* name, void* handle) {
    const ShmemCall call(name);
    Team* team = team_or_null(handle);
    if (!team) return;
    if (team->predefined) complain("the predefined teams can't be destroyed");
    destroy_team(team);
}

int starling_shmem_team_my_pe(const char* name, void* handle) {
    const ShmemCall call(name);
    const Team* team = team_or_null(handle);
    return team ? team->rank() : -1;
}

int starling_shmem_team_n_pes(const char* name, void* handle) {
    const ShmemCall call(name);
    const Team* team = team_or_null(handle);
    return team ? team->size() : -1;
}

int starling_shmem_team_contexts(const char* name, void* handle) {
    const ShmemCall call(name);
    const Team* team = team_or_null(handle);
    return team ? team->contexts : -1;
}

int starling_shmem_team_translate(const char* name, void* from, int pe, void* to) {
    const ShmemCall call(name);
    const Team *source = team_or_null(from), *target = team_or_null(to);
    if (!source || !target || pe < 0 || pe >= source->size()) return -1;
    const int found = target->comm->local_group().rank_of(source->at(pe));
    return found == MPI_UNDEFINED ? -1 : found;
}

int starling_shmem_context_create(const char* name, void* handle, long, void** made) {
    const ShmemCall call(name);
    *made = nullptr;
    Team* team = team_or_null(handle);
    if (!team) return 1;
    ShmemContext* context = contexts.create();
    context->team = team;
    if (team->regular) static_cast<ContextHead&>(*context) = {static_cast<uint32_t>(team->size()), team->first, team->stride};
    team->made.push_back(context);
    *made = context;
    return 0;
}

void starling_shmem_context_destroy(const char* name, void* handle) {
    const ShmemCall call(name);
    if (!handle) return;
    ShmemContext& context = context_of(handle);
    if (&context == &default_context()) complain("SHMEM_CTX_DEFAULT can't be destroyed");
    quiet(context);
    std::erase(context.team->made, &context);
    contexts.destroy(&context);
}

void* starling_shmem_context_team(const char* name, void* handle) {
    const ShmemCall call(name);
    return handle ? handle_of(context_of(handle).team) : nullptr;
}

void* starling_shmem_active_set(const char* name, int start, int log_stride, int size) {
    const ShmemCall call(name);
    const int64_t stride = log_stride >= 0 && log_stride < 31 ? int64_t{1} << log_stride : 0;
    if (size < 1 || start < 0 || stride == 0 || start + stride * (size - 1) >= world().pes)
        complain("an active set of %d PEs from PE %d on with a stride of 2^%d does not fit in %d PEs", size, start, log_stride,
                 world().pes);
    if (!is_member(world().me, start, static_cast<int>(stride), size)) complain("PE %d is not in the active set", world().me);
    if (size == world().pes) return reinterpret_cast<void*>(kWorldTeam);
    if (!active_sets) active_sets = new ActiveSets;
    Team*& team = (*active_sets)[{start, log_stride, size}];
    if (!team) {
        const uint64_t number =
            static_cast<uint64_t>(start) << 32 | static_cast<uint64_t>(log_stride) << 27 | static_cast<uint64_t>(size);
        team = sub_team(*world().everyone, TeamKind::active_set, number, start, static_cast<int>(stride), size, 0);
        team->predefined = true;
    }
    return team;
}
}  // extern "C"

}  // namespace starling::shmem
