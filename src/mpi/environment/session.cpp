#include "mpi/environment/session.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "comm/info.h"
#include "comm/session.h"
#include "mpi/comm/errhandler_handle.h"
#include "mpi/common/check.h"
#include "mpi/common/handles.h"
#include "mpi/common/session_check.h"
#include "mpi/pt2pt/buffered.h"

namespace starling::mpi {

using comm::HandlerKind;
using comm::Session;

namespace {

struct LevelName {
    const char* name;
    int level;
};
constexpr LevelName kLevels[] = {
    {"MPI_THREAD_SINGLE", MPI_THREAD_SINGLE},
    {"MPI_THREAD_FUNNELED", MPI_THREAD_FUNNELED},
    {"MPI_THREAD_SERIALIZED", MPI_THREAD_SERIALIZED},
    {"MPI_THREAD_MULTIPLE", MPI_THREAD_MULTIPLE},
};

// Reads the thread level from an info object; the default is MPI_THREAD_MULTIPLE.
int requested_level(const comm::Info& info, int& level) {
    const std::string* asked = info.find("thread_level");
    level = MPI_THREAD_MULTIPLE;
    if (!asked) return MPI_SUCCESS;
    for (const LevelName& entry : kLevels)
        if (*asked == entry.name) {
            level = entry.level;
            return MPI_SUCCESS;
        }
    return fail(MPI_ERR_INFO_VALUE,
                "the info value thread_level=%.60s is not valid; use MPI_THREAD_SINGLE, _FUNNELED, "
                "_SERIALIZED or _MULTIPLE",
                asked->c_str());
}

const char* level_name(int level) {
    for (const LevelName& entry : kLevels)
        if (entry.level == level) return entry.name;
    return "";
}

int unknown_set(Session* session, const char* name) {
    return raise(*session, fail(MPI_ERR_ARG, "there is no process set %.100s; MPI_Session_get_nth_pset lists them", name));
}

}  // namespace

int Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
    comm::Info object;
    if (!comm::read_info(info, object)) return bad_handle(nullptr, MPI_ERR_INFO, "info object");
    comm::Errhandler* handler = usable_errhandler(errhandler, HandlerKind::session);
    if (!handler) return raise(static_cast<comm::Comm*>(nullptr), MPI_ERR_ERRHANDLER);
    const ErrorSubject subject{.session = MPI_SESSION_NULL};
    if (!session) return raise_through(handler, HandlerKind::session, subject, null_pointer("session"));
    int level;
    int error = requested_level(object, level);
    if (!error) error = runtime::acquire(level);
    if (error) return raise_through(handler, HandlerKind::session, subject, error);
    *session = comm::to_handle(comm::make_session(handler, level));
    return MPI_SUCCESS;
}

int Session_finalize(MPI_Session* session) {
    {
        Lock lock;
        if (!session) return mpi::null_argument(static_cast<comm::Comm*>(nullptr), "session");
        Session* s = comm::from_handle(*session);
        if (!s) return bad_session();
        drop_buffer(s->attached_buffer);
        comm::destroy(s);
        *session = MPI_SESSION_NULL;
    }
    runtime::release(false);
    return MPI_SUCCESS;
}

int Session_get_num_psets(MPI_Session session, MPI_Info, int* npset_names) {
    Session* s = comm::from_handle(session);
    if (!s) return bad_session();
    if (!npset_names) return null_argument(*s, "npset_names");
    *npset_names = comm::process_set_count();
    return MPI_SUCCESS;
}

int Session_get_nth_pset(MPI_Session session, MPI_Info, int n, int* pset_len, char* pset_name) {
    Session* s = comm::from_handle(session);
    if (!s) return bad_session();
    if (!pset_len) return null_argument(*s, "pset_len");
    if (n < 0 || n >= comm::process_set_count())
        return raise(*s, fail(MPI_ERR_ARG, "there is no process set number %d: there are %d process sets", n,
                              comm::process_set_count()));
    const char* name = comm::process_set_name(n);
    const int needed = static_cast<int>(std::strlen(name)) + 1;
    // `*pset_len` includes the null character. A call with *pset_len = 0 only queries the length.
    if (*pset_len > 0) {
        if (!pset_name) return null_argument(*s, "pset_name");
        const int copied = std::min(*pset_len, needed) - 1;
        std::memcpy(pset_name, name, static_cast<size_t>(copied));
        pset_name[copied] = '\0';
    }
    *pset_len = needed;
    return MPI_SUCCESS;
}

int Session_get_info(MPI_Session session, MPI_Info* info_used) {
    Session* s = comm::from_handle(session);
    if (!s) return bad_session();
    if (!info_used) return null_argument(*s, "info_used");
    comm::Info* info = comm::make_info();
    info->set("thread_level", level_name(s->thread_level));
    *info_used = comm::to_handle(info);
    return MPI_SUCCESS;
}

int Session_get_pset_info(MPI_Session session, const char* pset_name, MPI_Info* info) {
    Lock lock;
    Session* s = comm::from_handle(session);
    if (!s) return bad_session();
    if (!pset_name || !info) return null_argument(*s, pset_name ? "info" : "pset_name");
    comm::Group* group = comm::process_set(*s, pset_name);
    if (!group) return unknown_set(s, pset_name);
    comm::Info* made = comm::make_info();
    made->set("mpi_size", std::to_string(group->size()));
    group->release();
    *info = comm::to_handle(made);
    return MPI_SUCCESS;
}

int Group_from_session_pset(MPI_Session session, const char* pset_name, MPI_Group* newgroup) {
    Lock lock;
    Session* s = comm::from_handle(session);
    if (!s) return bad_session();
    if (!pset_name || !newgroup) return null_argument(*s, pset_name ? "newgroup" : "pset_name");
    comm::Group* group = comm::process_set(*s, pset_name);
    if (!group) return unknown_set(s, pset_name);
    *newgroup = comm::add_handle(group);
    return MPI_SUCCESS;
}

int Session_set_errhandler(MPI_Session session, MPI_Errhandler errhandler) {
    Session* s = comm::from_handle(session);
    if (!s) return bad_session();
    comm::Errhandler* handler = usable_errhandler(errhandler, HandlerKind::session);
    if (!handler) return raise(*s, MPI_ERR_ERRHANDLER);
    comm::replace(s->errhandler, handler);
    return MPI_SUCCESS;
}

int Session_get_errhandler(MPI_Session session, MPI_Errhandler* errhandler) {
    Session* s = comm::from_handle(session);
    if (!s) return bad_session();
    if (!errhandler) return null_argument(*s, "errhandler");
    *errhandler = make_handle(s->errhandler);
    return MPI_SUCCESS;
}

int Session_call_errhandler(MPI_Session session, int errorcode) {
    Session* s = comm::from_handle(session);
    if (!s) return bad_session();
    clear_failure();
    raise(*s, errorcode);
    return MPI_SUCCESS;
}

int Session_toint(MPI_Session session) { return to_int(session, comm::from_handle(session)); }

MPI_Session Session_fromint(int session) { return from_int<MPI_Session>(session, comm::session_at, MPI_SESSION_NULL); }

}  // namespace starling::mpi
