// The transports of this process. What they tell comes in here and goes to whom it concerns: link is their sink.
#pragma once

#include <cstdint>

#include "link/peer.h"
#include "transport/shm/shared_memory.h"

namespace starling::link {

/// Once, with the own job: what is said to processes of this host, this one too.
void start_transports();
/// Opens the network, if it isn't open; a process in a universe of one host opens no socket. Constant time; talks to no one.
int open_network();
/// Null while it isn't open.
transport::Transport* network();

shm::SharedMemory& shared_memory();

/// Gives a new peer its base path, by the first of the transports that reaches it: they are asked in the order of what they cost.
int attach(Peer& peer);

/// Polls each once. Whether anything happened.
bool poll_transports(transport::Transport::Look look);
/// Takes back what a dead sender has left half done. Whether there was such a thing.
bool recover();
/// The job is gone and about to be forgotten.
void forget_in_transports(const Job& job);

/// Readable when poll() would find something; -1 while those who send ring the doorbell alone.
int wait_descriptor();
/// Before a sleep on it, and after it. False: something has come, so don't sleep.
bool arm();
void disarm();
/// It was found readable: the next poll looks at all that came.
void woken();
/// When poll() must be called though nothing is readable; ns, UINT64_MAX: never.
uint64_t next_deadline();
/// Of rooms above that have times of their own: one function, which says when.
void add_deadline(uint64_t (*when)());

/// Has others learn, when they ask, whether this process has called MPI_Finalize.
void publish_state(bool finalized);
/// This process will not poll for a long time, or never again: what was held back goes out.
void flush_transports();
/// It only waits for what it has sent to be acknowledged: that is asked for, and what was held back goes out.
void hasten_transports();

}  // namespace starling::link
