// Requests as handles.
#pragma once

#include <cstdint>

#include "base/handle.h"
#include "base/pool.h"
#include "comm/comm.h"
#include "mpi.h"
#include "progress/request.h"

namespace starling::mpi {

/// The request behind a handle; nullptr for MPI_REQUEST_NULL and for freed handles.
inline progress::Request* request_from_handle(MPI_Request handle) { return object_behind<progress::Request>(handle); }
inline MPI_Request request_to_handle(progress::Request* request) {
    return request ? reinterpret_cast<MPI_Request>(request) : MPI_REQUEST_NULL;
}

/// MPI_Request_toint and _fromint: a number of its own for each live handle, given at the first toint.
int request_to_int(MPI_Request handle);
MPI_Request request_from_int(int number);
struct RequestNumbers;
extern RequestNumbers* request_numbers;  ///< null until one is asked for
void forget_its_number(progress::Request& request);
inline void forget_number(progress::Request& request) {
    if (request_numbers) [[unlikely]]
        forget_its_number(request);
}

inline comm::Comm* comm_of(const progress::Request& request) { return static_cast<comm::Comm*>(request.communicator); }

/// A pool of requests that are handles, each holding a reference of its communicator.
template <class T>
class RequestPool {
  public:
    T* create(comm::Comm* comm, const progress::RequestClass& operations) {
        T* request = pool_.create();
        request->operations = &operations;
        if (comm) request->communicator = comm->retain();
        return request;
    }
    void destroy(T& request) {
        comm::Comm* comm = comm_of(request);
        forget_number(request);
        pool_.destroy(&request);
        if (comm) comm->release();
    }

  private:
    Pool<T> pool_;
};

/// A handle for an operation that was over when it was started; shared, never freed.
MPI_Request completed_request();

}  // namespace starling::mpi
