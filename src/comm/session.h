// MPI sessions: independent uses of the library by parts of a program (MPI 5.0 section 11.3).
#pragma once

#include <cstdint>

#include "comm/errhandler.h"
#include "comm/group.h"
#include "mpi.h"

namespace starling::message {
class BsendBuffer;
}

namespace starling::comm {

struct Session {
    static constexpr uint32_t kMagic = 0x53657373;
    uint32_t magic = 0;
    uint32_t pool_index = 0;
    Errhandler* errhandler;  ///< error handler of the session; never null
    int thread_level;
    message::BsendBuffer* attached_buffer = nullptr;  ///< the buffer of MPI_Session_attach_buffer, which owns it

    Session(Errhandler* handler, int level) : errhandler(handler->retain()), thread_level(level) {}
    ~Session() { errhandler->release(); }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
};

Session* make_session(Errhandler* handler, int thread_level);
void destroy(Session* session);
Session* session_at(uint32_t pool_index);

/// Returns the session of a handle; nullptr for MPI_SESSION_NULL and for finalized or invalid handles.
Session* from_handle(MPI_Session handle);
MPI_Session to_handle(const Session* session);

/// Functions for the process sets, "mpi://WORLD" and "mpi://SELF".
int process_set_count();
const char* process_set_name(int index);
/// Returns the group of a process set, derived from a session, as a new reference; nullptr if there is no set of that name.
Group* process_set(const Session& session, const char* name);
/// Returns the session from which a group was derived; nullptr: none, or it is finalized.
Session* session_of(const Group& group);

}  // namespace starling::comm
