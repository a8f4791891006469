#include "comm/session.h"

#include <strings.h>

#include <iterator>

#include "base/handle.h"
#include "base/no_destroy.h"
#include "base/pool.h"
#include "base/state.h"
#include "comm/comm.h"

namespace starling::comm {

namespace {

STARLING_STATE NoDestroy<SharedPool<Session>> session_pool_storage;
constinit auto& session_pool = session_pool_storage.value;

constexpr const char* kProcessSets[] = {"mpi://WORLD", "mpi://SELF"};

}  // namespace

Session* make_session(Errhandler* handler, int thread_level) { return session_pool.create(handler, thread_level); }

void destroy(Session* session) { session_pool.destroy(session); }

Session* session_at(uint32_t pool_index) { return session_pool.at(pool_index); }

Session* from_handle(MPI_Session handle) { return object_behind<Session>(handle); }

MPI_Session to_handle(const Session* session) {
    return session ? reinterpret_cast<MPI_Session>(const_cast<Session*>(session)) : MPI_SESSION_NULL;
}

int process_set_count() { return static_cast<int>(std::size(kProcessSets)); }

const char* process_set_name(int index) { return kProcessSets[index]; }

Group* process_set(const Session& session, const char* name) {
    GroupBuilder builder;
    // The names of process sets are URIs, which are compared without case.
    if (strcasecmp(name, kProcessSets[0]) == 0)
        builder.add(world()->local_group());
    else if (strcasecmp(name, kProcessSets[1]) == 0)
        builder.add(self()->local_group());
    else
        return nullptr;
    return builder.build(session.pool_index + 1);
}

Session* session_of(const Group& group) { return group.session ? session_at(group.session - 1) : nullptr; }

}  // namespace starling::comm
