// A fake of libibverbs and librdmacm, with devices of one process on one network; tests decide their faults. It keeps the libraries'
// promises and no more. Work ends in order only within a queue. A send slot is free when a completion that covers it was polled. A datagram
// without a receive buffer is lost. A misuse ends the program with an error text: an overrun completion queue, unregistered memory,
// unacknowledged events, or objects destroyed while in use. The program under test calls only the functions in `verbs.cpp` and `cm.cpp`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fake {

/// A device with one port, as add() creates it.
struct Facts {
    std::string name = "fake0";
    std::string file = "uverbs0";
    uint32_t mtu = 4096;
    uint32_t most_inline = 256;
    int most_queues = 1000, most_completions = 65536, most_receives = 4096, most_reads = 16;
    bool ethernet = true;  ///< whether the port is RoCE; false: InfiniBand
    bool iwarp = false;
    bool shared_receive = true;
    bool datagrams = true;
    int open_error = 0;  ///< errno with which ibv_open_device fails; 0: it succeeds
    uint16_t lid = 0;
    std::string path = {};  ///< path of a file that exists as long as the device does; empty: not reported
    /// An entry of the GID table: version (1, 2; 0 InfiniBand), and the GID as the text of an IPv6 address.
    struct Gid {
        int version = 2;
        std::string text;
    };
    std::vector<Gid> gids = {};  ///< GID table; empty: one entry, RoCE v2, ::ffff:10.0.0.<number of the device, from 1>
};

/// How the network treats datagrams, and how completion queues order them. Chances in percent.
struct Weather {
    uint32_t seed = 1;
    uint32_t lose = 0, twice = 0, late = 0;
    bool mix_queues = false;  ///< whether completions of different queues are reported in random order
};

/// Forgets devices, weather and planned failures. Objects that the program has not destroyed remain: see living().
void reset();
void add(const Facts& facts);
void set(const Weather& weather);

/// Returns the objects that were created and not destroyed, as "2 queue pairs, 1 completion queue"; empty: none.
std::string living();

/// Makes the n-th call (from 1, counted from now) of a function that may fail do so, with this errno.
void fail_call(uint64_t n, int error);
/// Returns the number of calls of functions that may fail, since the last fail_call() or reset(), and the name of the call that failed.
uint64_t calls();
const char* failed_call();
/// Makes all calls of a function fail with this errno, until error is 0.
void fail_always(const char* function, int error);

void set_link(const std::string& device, bool up);
void set_gid(const std::string& device, int index, const std::string& text);
/// Removes the device: an event reports it, and its calls fail.
void remove(const std::string& device);
/// Sets whether address handles can be created for a GID.
void set_reachable(const std::string& gid, bool reachable);
/// Puts the queue into the error state. Its first outstanding work ends with this status (ibv_wc_status); without work, an event reports
/// it.
void break_queue(uint32_t number, int status);
/// Ends connections whose peer has not answered, as after the last retry.
void time_out();
/// While true, completions stay in the device, as on a slow network. They are reported when it is false again.
void hold_completions(bool held);

struct Counts {
    uint64_t datagrams = 0, lost = 0, twice = 0, late = 0, without_buffer = 0, not_ready = 0, bells = 0;
};
Counts counts();

}  // namespace fake
