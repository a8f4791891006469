// Jobs that meet: spawning, ports, published names, joining over a socket (MPI 5.0 chapter 11). Arguments have been checked; where
// a call is collective, what matters at the root alone is looked at there alone. All calls need the library's lock. Each returns
// MPI_SUCCESS or an error class with failure_text(); `made` gets a communicator with one reference, and stays as it is on an error.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/comm.h"
#include "control/control_protocol.h"

namespace starling::dynamic {

/// In MPI_Init, before the process says that it has arrived: the inter-communicator with the parents of a spawned job, and what is
/// done with packets of other jobs.
void start();
/// After this process has arrived: wakes the parent that waits for the last one.
void tell_parents_of_arrival();
/// The communicator with the parents; null if there are none, or it has been freed.
comm::Comm* parent();

/// What became of the processes asked for: as many in a row with this code, which may be more than there can be.
struct Codes {
    int32_t code;
    uint64_t count;
};
using Commands = std::vector<control::SpawnCommand>;

/// Starts a job of children and waits until all of them have arrived. Collective; `read` is called at the root, and what it returns is
/// everybody's error. `codes` is valid on errors as well, and empty where nobody knows.
int spawn(comm::Comm& comm, int root, const std::function<int(Commands&)>& read, std::vector<Codes>& codes, comm::Comm*& made);

/// The name of a new port of this process.
std::string open_port();
int close_port(const char* name);
/// Meets those who connect to a port of the root's. Collective, as is connect().
int accept(comm::Comm& comm, int root, const char* port, comm::Comm*& made);
int connect(comm::Comm& comm, int root, const char* port, comm::Comm*& made);
/// Meets the process at the other end of a socket.
int join(int socket, comm::Comm*& made);

// The user's daemon keeps published names; the launcher passes them on.
int publish(const char* service, const char* port);
int unpublish(const char* service, const char* port);
int look_up(const char* service, std::string& port);

}  // namespace starling::dynamic
