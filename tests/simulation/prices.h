// What the actions of a process cost on the simulated machine. Runs of seeds use the defaults here. Runs of programs use a cost file
// (costs.h), and then nothing is random.
#pragma once

#include <cstdint>

namespace starling::simulation {

struct Prices {
    bool exact = false;  ///< whether a cost file is in use: prices by kind, one clock per process, no random latency
    bool has_devices = false, has_cache = false, has_switches = false;
    uint64_t call = 300;   ///< runs of seeds: any system call, ns
    uint64_t clock = 40;   ///< reading the clock, ns
    uint64_t yield = 500;  ///< sched_yield(), ns

    struct Figures {
#define NS(section, key, ...) uint64_t section##_##key = 0;
#define COUNT(section, key, ...) uint64_t section##_##key = 0;
#define REAL(section, key, ...) double section##_##key = 0;
#include "costs.def"
#undef NS
#undef COUNT
#undef REAL
    } of;  ///< figures of the cost file; valid if `exact`

    /// Returns the price of sealing or opening a datagram to a group, ns. Runs of seeds have none.
    uint64_t seal_price(uint64_t bytes) const {
        return exact ? of.groups_seal + static_cast<uint64_t>(of.groups_byte * static_cast<double>(bytes)) : 0;
    }
    /// Returns a price that depends on the number of bytes, ns. Runs of seeds: that of any call.
    uint64_t with_bytes(uint64_t fixed, double per_byte, uint64_t bytes) const {
        return exact ? fixed + static_cast<uint64_t>(per_byte * static_cast<double>(bytes)) : call;
    }
};

/// The prices of this program; set before the world begins.
inline Prices& prices() {
    static constinit Prices all;
    return all;
}

}  // namespace starling::simulation
