// What a simulation does, all of it drawn from its seed before it begins: where the ranks are, how the library is set, what
// the ranks send each other, and what goes wrong meanwhile. Correct by construction: all ranks follow one list of steps
// in its order, each those that it takes part in, so there is always one that can be done, and what each receive
// gets follows from the list.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "daemon.h"
#include "devices.h"
#include "features.h"
#include "network.h"
#include "random.h"

namespace starling::simulation {

enum class Kind : uint8_t {
    message,         ///< from one to another
    exchange,        ///< two, both ways at once
    crowd,           ///< several to one that receives from whoever comes; neighbours in the list
    cancel_send,     ///< sent, perhaps taken back, and received if not
    cancel_receive,  ///< a receive taken back, with or without a message for it
    collective,
    split,
    duplicate,
    release,    ///< of a communicator
    compute,    ///< one rank does something else
    phase,      ///< all have done what they have begun, and begin the phase with the number `count`
    window,     ///< made, used in `count` epochs and freed; of memory that was there if any_tag
    symmetric,  ///< OpenSHMEM's memory and teams, in `count` rounds of all ranks
};

enum class SendWay : uint8_t { send, ssend, isend, issend, persistent };
enum class ReceiveWay : uint8_t { recv, irecv, persistent, probe, mprobe, iprobe, test };
enum class Collective : uint8_t {
    barrier,
    bcast,
    reduce,
    allreduce,
    gather,
    scatter,
    allgather,
    alltoall,
    reduce_scatter,
    scan,
    exscan
};
inline constexpr int kCollectives = 11;

struct Step {
    Kind kind;
    uint32_t id = 0;  ///< its place in the list, and what its payload is made of
    uint32_t comm = 0;
    int from = 0, to = 0;  ///< ranks of the communicator; `from` is the root
    int tag = 0;
    uint32_t bytes = 0;
    SendWay send = SendWay::send;
    ReceiveWay receive = ReceiveWay::recv;
    bool any_tag = false;
    bool strided_out = false, strided_in = false;  ///< words with gaps between them, in the sender's or receiver's memory
    bool waits = true;                             ///< for what it has begun, before the next step
    uint32_t crowd = 0, place = 0;                 ///< the first step of a crowd, and which of its receives this is
    Collective collective = Collective::barrier;
    uint32_t count = 0;  ///< elements of each
    uint32_t made = 0;   ///< split, duplicate: the first communicator that comes of it
    uint32_t colors = 1;
    uint64_t ns = 0;
};

/// Several communicators may come of one split: each is one of its own here.
struct Community {
    std::vector<uint32_t> members;  ///< ranks of the world, in order
    int rank_of(uint32_t world) const;
};

/// What goes wrong, and when.
struct Fault {
    enum class Kind : uint8_t { rail_down, rail_up, silent, heard, death, device_out, device_in } kind;
    uint64_t at = 0;  ///< ns after the begin, or after the rank comes to the step
    uint32_t host = 0, rail = 0;
    uint32_t rank = 0;
    uint32_t step = UINT32_MAX;  ///< that its death is in; none: UINT32_MAX
};

struct Script {
    explicit Script(uint64_t seed, uint32_t wanted_ranks = 0);
    /// A job as programs are, of which nothing goes wrong: hosts of 64 ranks, each with a device; all talk to their neighbours in a grid, and
    /// then to all others.
    static Script large(uint32_t ranks);
    /// A job of a rank on each host, with a device, whose partners change from phase to phase and come again: more than may have
    /// connections at a time, so that a plan has something to learn.
    static Script phased(uint32_t ranks);

    uint64_t seed;
    const char* name = "";  ///< what kind of trouble there is
    uint32_t ranks = 2, rails = 1;
    Placement placement;
    Weather weather;
    DeviceWeather devices;
    std::vector<std::pair<std::string, std::string>> settings;
    std::vector<Community> communities;
    std::vector<Step> steps;
    std::vector<Fault> faults;
    std::vector<bool> doomed;  ///< by rank: it will die
    bool mortal = false;       ///< some will
    /// Whether OpenSHMEM is used, and if it begins before MPI and ends after it.
    bool symmetric = false, symmetric_first = false, symmetric_last = false;

    /// What it has; whether that comes to be is the run's to say.
    Features drawn() const;
    bool fails_with(const Community& of, int rank) const { return doomed[of.members[static_cast<size_t>(rank)]]; }
    std::string describe() const;

  private:
    Script() : seed(1) {}
    void place(Random& random, uint32_t wanted_ranks);
    void set(Random& random);
    void set_multicast(Random random);
    void set_devices(Random random);
    void trouble(Random& random);
    void move_deaths(Random random);
    void write(Random& random);
    static Script with_devices(uint32_t ranks, uint32_t hosts);
    void write_large();
    void write_phased();
    void add_message(uint32_t from, uint32_t to);
    void write_step(Random& random, uint32_t community);
    void write_message(Random& random, Step step);
    void write_crowd(Random& random, Step step);
    void write_collective(Random& random, Step step);
    void write_communities(Random& random, Step step);
    void write_window(Random& random, Step step);
    void write_symmetric(Random& random, Step step);
    Step& add(Step step);
    uint32_t draw_bytes(Random& random);

    std::vector<bool> released_;
    uint64_t bytes_left_ = 0;
    int next_tag_ = 1000;
};

}  // namespace starling::simulation
