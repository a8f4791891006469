// The transports of this process. Link is their sink: it receives their packets and events, and forwards each to the code that handles it.
#pragma once

#include <cstdint>

#include "link/peer.h"
#include "transport/shm/shared_memory.h"

namespace starling::link {

/// Creates the shared-memory transport, for packets to processes of this host, this one included. Called once, when the own job is known.
void start_transports();
/// Opens the network, if it isn't open; a process in a universe of one host opens no socket. Takes constant time and sends nothing.
int open_network();
/// Returns the network, or null while it isn't open.
transport::Transport* network();

shm::SharedMemory& shared_memory();

/// Sets a new peer's base path: that of the cheapest transport that reaches the peer.
int attach(Peer& peer);

/// Polls each transport once. Returns whether anything happened.
bool poll_transports(transport::Transport::PollUrgency look);
/// Recovers slots that a dead sender has left half written. Returns whether there were any.
bool recover();
/// Makes the transports drop what they store for the processes of a job that has ended, before the job is forgotten.
void forget_in_transports(const Job& job);

/// Returns a descriptor that is readable when poll() would find something; -1 while all senders ring the doorbell.
int wait_descriptor();
/// Prepare and end a sleep on the descriptor. arm() returns false if something has arrived, so that the caller must not sleep.
bool arm();
void disarm();
/// Makes the next poll read from all sockets; to be called when the descriptor was readable.
void woken();
/// Returns when poll() must be called even if nothing is readable; ns, UINT64_MAX: never.
uint64_t next_deadline();
/// Sets the one function that returns the next deadline of the rooms above link.
void add_deadline(uint64_t (*when)());

/// Publishes to processes on other hosts whether this process takes part in communication. The port of `state` is not used.
void publish_state(job::PortWord state);
/// Sends everything that was held back for batching. Called when this process will not poll for a long time, or never again.
void flush_transports();
/// Requests acknowledgements and sends everything that was held back. Called when this process waits only for its data to be acknowledged.
void request_all_acks();

}  // namespace starling::link
