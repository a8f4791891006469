// The fake devices between processes: packets to another process's queue travel by UDP and TCP from the device's interface. So the lab's
// cables lose, duplicate and delay datagrams as usual, and a connection breaks when TCP times out.
//
// With FAKE_VERBS=rail0,rail1 in its environment, a process finds a device "fake_rail0" on each of these interfaces that has an IPv4
// address. With FAKE_VERBS_BREAK=200 a connection breaks every 200 ms. A queue's number is the process's port on that device plus eight
// bits; so no list of queues is needed, and a process has at most 255 queues.
#pragma once

#include <cstdint>

#include "fake/world.h"

namespace fake::wire {

/// Adds the devices of FAKE_VERBS, once. Without that variable it does nothing.
void find_devices();
/// Returns the next queue number of this process on a device; it starts with the port. 0: the sockets cannot be opened, or no number is
/// left.
uint32_t next_number(Device& device);
/// Returns whether the packet's queue is in another process.
bool elsewhere(const Packet& packet);
/// Sends a packet to a queue in another process. Returns false if it was not sent.
bool send(const Packet& packet);
void join(Device& device, const Gid& group);

}  // namespace fake::wire
