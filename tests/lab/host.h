// A host of the lab: a process tree in namespaces of its own. Host 0 is the switch, which has the bridges.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace starling::lab {

// What all hosts of a lab have in common.
struct Plan {
    std::string state;  // the lab's directory, visible in every host under the same name
    int hosts = 1;      // lab1 ... labN
    int rails = 1;      // rail0 ... on each
    int mtu = 1500;
    bool shared_tmp = false;        // /tmp of the machine instead of one of its own
    bool fixed_neighbours = false;  // the kernel's ARP table is one for all namespaces, so many hosts do without it
};

// A started host. `ready` gives one byte when it has its addresses and listens; it waits for one byte on
// `go`, which says that its cables are there.
struct Host {
    pid_t pid = -1;
    int go = -1;
    int ready = -1;
};

// 10.77.<rail>.<host>, and the hardware address 02:77:00:00:<rail>:<host>.
std::string address_of(int host, int rail);

// Starts host `index` in network, UTS, mount, IPC, PID and time namespaces of its own. It ends with its
// parent. Its monotonic clock is ahead of the machine's by 1000 s times its index: hosts did not boot
// together.
Host start_host(const Plan& plan, int index);

}  // namespace starling::lab
