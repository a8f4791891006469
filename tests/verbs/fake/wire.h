// Between processes: what goes to a queue of another travels by UDP and TCP, from the interface whose device it is. So the lab's
// cables lose, double and delay datagrams here as elsewhere, and a connection breaks where TCP gives up.
//
// With FAKE_VERBS_BREAK=200 a connection breaks every 200 ms. With FAKE_VERBS=rail0,rail1 in its environment, the process finds a device "fake_rail0" on each interface that has an IPv4 address. A queue's
// number is the process's port on that device and eight bits more; so nobody keeps a list, and a process has at most 255 queues.
#pragma once

#include <cstdint>

#include "fake/world.h"

namespace fake::wire {

/// Adds the devices of FAKE_VERBS, once. Without that variable nothing happens here.
void find_devices();
/// Numbers of this process's queues on a device begin with it; 0: no wire, or none left.
uint32_t next_number(Device& device);
/// Whether a queue is in another process.
bool elsewhere(const Packet& packet);
/// False: not sent.
bool send(const Packet& packet);
void join(Device& device, const Gid& group);

}  // namespace fake::wire
