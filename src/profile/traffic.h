// Counts of the messages to one peer, and of the accesses to its memory, in the current phase. Plans and profiles both use these counts, so
// traffic is counted once for both.
//
// Not thread-safe: requires the library's lock (base/lock.h).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/list.h"

namespace starling::profile {

/// A message's size class. small: fits in one packet of any path. pool: eager, with its data in the outbox or in several datagrams. large:
/// rendezvous.
enum class Size : uint8_t { small, pool, large };
inline constexpr size_t kSizes = 3;
/// The longest message that counts as small, bytes.
inline constexpr uint64_t kSmallMost = 1024;

/// The path of the message's first packet: the base path or a connection (direct ring, TCP).
enum class PathKind : uint8_t { base, connection };
inline constexpr size_t kWays = 2;

/// The kind of access to another process's memory (windows, OpenSHMEM). An update is an atomic operation, with or without a result.
enum class AccessKind : uint8_t { put, get, update };
inline constexpr size_t kAccesses = 3;

struct Tally {
    uint64_t messages = 0;  ///< number of messages or accesses
    uint64_t bytes = 0;
};

/// Bins of the histogram of messages by size: 0 bytes, 1 byte, 2 bytes, and then up to each further power of two.
inline constexpr size_t kSizeBins = 64;
inline size_t size_bin(uint64_t bytes) {
    return bytes == 0 ? 0 : std::min(kSizeBins - 1, size_t{1} + static_cast<size_t>(std::bit_width(bytes - 1)));
}
/// Returns the size of the largest messages of a bin; the last bin has no limit.
inline uint64_t size_of_bin(size_t bin) { return bin == 0 ? 0 : uint64_t{1} << (bin - 1); }

/// Traffic to one process in this phase. Owned by src/profile; deleted at the end of the phase in which close_traffic() is called.
struct Traffic {
    Traffic(uint64_t its_job, uint32_t its_rank, Tally* the_sizes) : job(its_job), rank(its_rank), by_size(the_sizes) {}
    const uint64_t job;
    const uint32_t rank;
    Tally* const by_size;  ///< the process's messages to all peers, by size_bin()
    Tally tallies[kSizes][kWays];
    Tally by_packets[kAccesses][kWays];  ///< accesses that the owner of the memory carries out, requested by packets
    Tally in_memory[kAccesses];          ///< accesses by load and store to mapped memory or by a system call, without packets
    bool closed = false;
    ListHook hook;  ///< link in the list of processes with traffic in this phase

    /// Return the sums over messages and over accesses by packets, all of which a connection would carry.
    uint64_t messages() const;
    uint64_t bytes() const;
    uint64_t messages(PathKind way) const;
};

/// Enables counting. Call it before the first peer is created; counting stays on.
void start_counting();
bool counting();

/// Creates the counts for a new peer; returns null unless counting is on.
Traffic* open_traffic(uint64_t job, uint32_t rank);
/// Releases the counts of a peer that is destroyed; the counts stay until the end of the phase. `traffic` may be null.
void close_traffic(Traffic* traffic);

/// Adds a process to the list of those with traffic in this phase.
void list(Traffic& traffic);

/// Counts one message. Inline, because it is in every send's code path.
inline void count(Traffic& traffic, Size size, PathKind way, uint64_t bytes) {
    Tally& tally = traffic.tallies[static_cast<size_t>(size)][static_cast<size_t>(way)];
    if (!traffic.hook.linked()) [[unlikely]]
        list(traffic);
    ++tally.messages;
    tally.bytes += bytes;
    Tally& of_size = traffic.by_size[size_bin(bytes)];
    ++of_size.messages;
    of_size.bytes += bytes;
}

/// Counts one access that the owner of the memory carries out, requested by packets. `way` is their path.
inline void count(Traffic& traffic, AccessKind access, PathKind way, uint64_t bytes) {
    if (!traffic.hook.linked()) list(traffic);
    Tally& tally = traffic.by_packets[static_cast<size_t>(access)][static_cast<size_t>(way)];
    ++tally.messages;
    tally.bytes += bytes;
}
/// Counts one access by load and store to mapped memory or by a system call, without packets.
inline void count_in_memory(Traffic& traffic, AccessKind access, uint64_t bytes) {
    if (!traffic.hook.linked()) list(traffic);
    Tally& tally = traffic.in_memory[static_cast<size_t>(access)];
    ++tally.messages;
    tally.bytes += bytes;
}

/// Visits the processes with traffic in this phase, in the order of their first message.
void each_traffic(void (*visit)(const Traffic& traffic, void* argument), void* argument);
/// Returns the messages of this phase by size, kSizeBins entries; null if counting is off.
const Tally* sizes();
/// Sets all counts to 0 for the next phase, and deletes those that were released.
void clear_traffic();

}  // namespace starling::profile
