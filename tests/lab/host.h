// Starts hosts of the lab: a host is a process tree in its own namespaces. Host 0 is the switch, which has the bridges.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace starling::lab {

// The properties that all hosts of a lab share.
struct Plan {
    std::string state;  // the lab's directory; has the same path in every host
    int hosts = 1;      // number of hosts: lab1 ... labN
    int rails = 1;      // network interfaces per host: rail0, rail1, ...
    int mtu = 1500;
    bool shared_tmp = false;        // use the machine's /tmp in place of one per host
    bool fixed_neighbours = false;  // permanent ARP entries: all namespaces share the kernel's ARP table, too small for many hosts
};

// A started host. It waits for one byte on `go`, which reports that its cables exist; it writes one byte to `ready` when it has its
// addresses and listens.
struct Host {
    pid_t pid = -1;
    int go = -1;
    int ready = -1;
};

// Returns 10.77.<rail>.<host>; the hardware address is 02:77:00:00:<rail>:<host>.
std::string address_of(int host, int rail);

// Starts host `index` in new network, UTS, mount, IPC, PID and time namespaces. It ends with its parent. Its monotonic clock is ahead of
// the machine's by 1000 s times its index, because real hosts boot at different times.
Host start_host(const Plan& plan, int index);

}  // namespace starling::lab
