// Conversion between requests and their handles and numbers, and the pools that requests live in.
#pragma once

#include <cstdint>

#include "base/handle.h"
#include "base/pool.h"
#include "comm/comm.h"
#include "mpi.h"
#include "progress/request.h"

namespace starling::mpi {

/// Returns the request behind a handle; nullptr for MPI_REQUEST_NULL and for freed handles.
inline progress::Request* request_from_handle(MPI_Request handle) { return object_behind<progress::Request>(handle); }
inline MPI_Request request_to_handle(progress::Request* request) {
    return request ? reinterpret_cast<MPI_Request>(request) : MPI_REQUEST_NULL;
}

/// Implement MPI_Request_toint and MPI_Request_fromint. The first call of request_to_int() for a live handle assigns a number that no other
/// live handle has.
int request_to_int(MPI_Request handle);
MPI_Request request_from_int(int number);
struct RequestNumbers;
extern RequestNumbers* request_numbers;  ///< numbers assigned to requests; null until request_to_int() is first called
void forget_its_number(progress::Request& request);
inline void forget_number(progress::Request& request) {
    if (request_numbers) [[unlikely]]
        forget_its_number(request);
}

inline comm::Comm* comm_of(const progress::Request& request) { return static_cast<comm::Comm*>(request.communicator); }

/// A pool of requests that have handles; each request holds a reference to its communicator.
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

/// Returns the handle of an operation that had completed when it was started. The handle is shared and never freed.
MPI_Request completed_request();

}  // namespace starling::mpi
