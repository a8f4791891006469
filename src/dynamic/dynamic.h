// Connections between jobs: spawn, ports, published names, joining over a socket (MPI 5.0 chapter 11).
//
// Arguments have been checked; in collective calls, arguments that matter only at the root are read only there. All calls need the
// library's lock. Each returns MPI_SUCCESS or an error class with failure_text(). On success `made` is a communicator with one reference;
// on an error it is unchanged.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/comm.h"
#include "control/control_protocol.h"

namespace starling::dynamic {

/// Called in MPI_Init, before the process reports its arrival. Creates the inter-communicator with the parents of a spawned job, and starts
/// to handle connect requests of other jobs.
void start();
/// Counts this process among those that have reached the end of MPI_Init. Returns whether it is the last one on this host.
bool count_arrival();
/// Wakes the parent that waits in MPI_Comm_spawn. Only the last process on a host to arrive calls it, after count_arrival().
void notify_parents_of_arrival();
/// Returns the inter-communicator with the parents; null if there are none, or if it has been freed.
comm::Comm* parent();

/// A run of equal error codes among the requested processes. `count` may exceed the number of processes that a job can have.
struct ErrorCodeRun {
    int32_t code;
    uint64_t count;
};
using Commands = std::vector<control::SpawnCommand>;

/// Starts a job of children and waits until all of them have arrived. Collective. Calls `read` at the root to get the commands; all members
/// return its error. `codes` gets the error codes, also after an error; it is empty if they are unknown.
int spawn(comm::Comm& comm, int root, const std::function<int(Commands&)>& read, std::vector<ErrorCodeRun>& codes,
          comm::Comm*& made);

/// Reads the command of `count` processes.
using ReadCommand = std::function<int(int count, Commands&)>;
/// Creates a communicator like `comm` in which new processes have the ranks of the failed ones; one like MPIX_Comm_shrink's if none has
/// failed. Collective over the living members of an intra-communicator: succeeds on all of them or fails on all, and then ends the new
/// processes. Calls `read` at the lowest living rank. A member with `error_here` takes part, and all return an error.
int replace(comm::Comm& comm, const ReadCommand& read, int error_here, comm::Comm*& made);
/// The part of replace() that the new processes perform; `parents` is their parent().
int join_survivors(comm::Comm& parents, int error_here, comm::Comm*& made);

/// Opens a port of this process and returns its name.
std::string open_port();
int close_port(const char* name);
/// Accepts a connection to a port of the root. Collective, as is connect().
int accept(comm::Comm& comm, int root, const char* port, comm::Comm*& made);
int connect(comm::Comm& comm, int root, const char* port, comm::Comm*& made);
/// Connects to the process at the other end of a socket.
int join(int socket, comm::Comm*& made);

// The functions below use published names, which the user's daemon stores; the launcher forwards the calls to it.
int publish(const char* service, const char* port);
int unpublish(const char* service, const char* port);
int lookup(const char* service, std::string& port);

}  // namespace starling::dynamic
