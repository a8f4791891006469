// Buffered sends and the buffers they use (MPI 5.0 sections 3.4 and 3.6).
#pragma once

#include "datatype/datatype.h"
#include "mpi.h"
#include "mpi/common/counts.h"

namespace starling::comm {
struct Comm;
}
namespace starling::message {
class BsendBuffer;
}

namespace starling::mpi {

int Bsend(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
int Ibsend(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request* request);

int Buffer_attach(void* buffer, MPI_Count size);
int Buffer_detach(void* buffer_addr, CountOut size);
int Buffer_flush();
int Buffer_iflush(MPI_Request* request);
int Comm_attach_buffer(MPI_Comm comm, void* buffer, MPI_Count size);
int Comm_detach_buffer(MPI_Comm comm, void* buffer_addr, CountOut size);
int Comm_flush_buffer(MPI_Comm comm);
int Comm_iflush_buffer(MPI_Comm comm, MPI_Request* request);
/// The buffer of an MPI session serves the communicators derived from it that have no buffer themselves.
int Session_attach_buffer(MPI_Session session, void* buffer, MPI_Count size);
int Session_detach_buffer(MPI_Session session, void* buffer_addr, CountOut size);
int Session_flush_buffer(MPI_Session session);
int Session_iflush_buffer(MPI_Session session, MPI_Request* request);

/// Flushes and detaches the buffer of a communicator or MPI session that is being freed; `buffer` may be null.
void drop_buffer(message::BsendBuffer*& buffer);

/// Copies the message into the buffer that serves `comm` (its own, else its session's, else the process's) and sends it from there. Returns
/// an MPI error class with failure_text(); MPI_ERR_BUFFER if there is no buffer or not enough space.
int send_buffered(comm::Comm& comm, const void* buffer, MPI_Count count, const datatype::Datatype& type, int dest, int tag);

}  // namespace starling::mpi
