// What is counted of the messages to one peer, and of the accesses to its memory, in the phase that is going on. A plan (reconfiguration) and a profile are made
// of these numbers and of nothing else, so they are counted once.
//
// Not thread-safe: within the library's lock (base/lock.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/list.h"

namespace starling::profile {

/// A message's size as the paths see it: in one packet of any path; in one packet, its data in the outbox or in several
/// datagrams; offered first, and moved when it is received.
enum class Size : uint8_t { small, pool, large };
inline constexpr size_t kSizes = 3;
/// The longest message that counts as small: bytes.
inline constexpr uint64_t kSmallMost = 1024;

/// How its first packet went: on the base path, or on a connection (direct ring, TCP).
enum class Way : uint8_t { base, connection };
inline constexpr size_t kWays = 2;

/// What is done to another process's memory (windows, OpenSHMEM): an update is an atomic operation, if it takes something back or not.
enum class Access : uint8_t { put, get, update };
inline constexpr size_t kAccesses = 3;

struct Tally {
    uint64_t messages = 0;  ///< or accesses
    uint64_t bytes = 0;
};

/// To one process, in this phase. Belongs to the room; lives until the phase in which it is let go is over.
struct Traffic {
    Traffic(uint64_t its_job, uint32_t its_rank) : job(its_job), rank(its_rank) {}
    const uint64_t job;
    const uint32_t rank;
    Tally tallies[kSizes][kWays];
    Tally by_packets[kAccesses][kWays];  ///< accesses that its owner carries out
    Tally in_memory[kAccesses];          ///< accesses that went by no path: in a mapping, or by the kernel
    bool let_go = false;
    ListHook hook;  ///< in the list of those with something in this phase

    /// Messages, and accesses by packets: what a connection would carry.
    uint64_t messages() const;
    uint64_t bytes() const;
    uint64_t messages(Way way) const;
};

/// Whether anything is counted. To be said before the first peer is met, and not changed after.
void start_counting();
bool counting();

/// For a peer that was just met: null unless something is counted.
Traffic* open_traffic(uint64_t job, uint32_t rank);
/// The peer is forgotten; what was counted stays until the end of the phase. Null is allowed.
void let_go(Traffic* traffic);

/// Puts it on the list of those with something in this phase.
void list(Traffic& traffic);

/// Counts one message: every send's code path.
inline void count(Traffic& traffic, Size size, Way way, uint64_t bytes) {
    Tally& tally = traffic.tallies[static_cast<size_t>(size)][static_cast<size_t>(way)];
    if (!traffic.hook.linked()) [[unlikely]]
        list(traffic);
    ++tally.messages;
    tally.bytes += bytes;
}

/// Counts one access, which goes by packets, or by no path.
inline void count(Traffic& traffic, Access access, Way way, uint64_t bytes) {
    if (!traffic.hook.linked()) list(traffic);
    Tally& tally = traffic.by_packets[static_cast<size_t>(access)][static_cast<size_t>(way)];
    ++tally.messages;
    tally.bytes += bytes;
}
inline void count_in_memory(Traffic& traffic, Access access, uint64_t bytes) {
    if (!traffic.hook.linked()) list(traffic);
    Tally& tally = traffic.in_memory[static_cast<size_t>(access)];
    ++tally.messages;
    tally.bytes += bytes;
}

/// Visits those with something in this phase, in the order of their first message.
void each_traffic(void (*visit)(const Traffic& traffic, void* argument), void* argument);
/// All back to 0: the next phase begins. What was let go is freed.
void clear_traffic();

}  // namespace starling::profile
