// A stand-in for libibverbs and librdmacm with adapters that are not there: devices of one process on one network, of which a test
// decides what they do wrong. It keeps to what the libraries promise and gives no more: work ends in the order of its queue alone,
// a place is free when a completion that tells of it was taken, a datagram without a buffer is lost. What a program may not do to an adapter ends it with a
// sentence: an overrun completion queue, memory that is not registered, events not acknowledged, objects destroyed while in use.
//
// Not a function of it but `verbs.cpp`'s and `cm.cpp`'s is called by the program under test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fake {

/// A device with one port, as it is added.
struct Facts {
    std::string name = "fake0";
    std::string file = "uverbs0";
    uint32_t mtu = 4096;
    uint32_t most_inline = 256;
    int most_queues = 1000, most_completions = 65536, most_receives = 4096, most_reads = 16;
    bool ethernet = true;  ///< RoCE, else InfiniBand
    bool iwarp = false;
    bool shared_receive = true;
    bool datagrams = true;
    int open_error = 0;  ///< of ibv_open_device
    uint16_t lid = 0;
    std::string path = {};  ///< that is there as long as the device is; empty: not said
    /// Its table: version (1, 2; 0 InfiniBand) and the GID as text, of IPv6.
    struct Gid {
        int version = 2;
        std::string text;
    };
    std::vector<Gid> gids = {};  ///< empty: RoCE v2, ::ffff:10.0.0.<number of the device, from 1>
};

/// What the network does to datagrams, and completion queues to their order. Chances in percent.
struct Weather {
    uint32_t seed = 1;
    uint32_t lose = 0, twice = 0, late = 0;
    bool mix_queues = false;  ///< completions of different queues are told in any order
};

/// Forgets devices, weather and plans. What the program has not destroyed is still there: see living().
void reset();
void add(const Facts& facts);
void set(const Weather& weather);

/// Objects that were made and not destroyed, as "2 queue pairs, 1 completion queue"; empty: none.
std::string living();

/// The n-th call from now on (from 1) of a function that may fail does, with this value of errno.
void fail_call(uint64_t n, int error);
/// How many such calls there were since the last fail_call() or reset(), and the name of the one that was made to fail.
uint64_t calls();
const char* failed_call();
/// All calls of a function fail so, until error is 0.
void fail_always(const char* function, int error);

void set_link(const std::string& device, bool up);
void set_gid(const std::string& device, int index, const std::string& text);
/// Pulled out: its events say so, its calls fail.
void remove(const std::string& device);
/// No address handle can be made for it, or can again.
void set_reachable(const std::string& gid, bool reachable);
/// The queue goes into error: with work under way its first ends with this status (ibv_wc_status), else an event says so.
void break_queue(uint32_t number, int status);
/// Connections whose peer has not answered give up, as after their retries.
void time_out();
/// Completions stay with the device, as if the network were slow; they are told when it is false again.
void hold_completions(bool held);

struct Counts {
    uint64_t datagrams = 0, lost = 0, twice = 0, late = 0, without_buffer = 0, not_ready = 0, bells = 0;
};
Counts counts();

}  // namespace fake
