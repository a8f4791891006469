// A rank's report to its launcher for the profile (docs/profile.md): the phases that have ended, each with its traffic. Compactly encoded,
// since there may be many.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "job/job_description.h"

namespace starling::control {

struct ProfileReport {
    /// Messages sent to one process, and accesses made to its memory. Sizes are in the order of profile::Size, accesses in that of
    /// profile::AccessKind.
    static constexpr size_t kAccesses = 3;
    struct PeerRecord {
        job::JobId job = 0;
        uint32_t rank = 0;
        uint64_t messages[3] = {}, bytes[3] = {};
        /// Messages sent on a connection, included in the numbers above.
        uint64_t connection_messages = 0, connection_bytes = 0;
        uint64_t accesses[kAccesses] = {}, access_bytes[kAccesses] = {};
        /// Accesses that the owner carried out on request, instead of this process.
        uint64_t packet_accesses = 0, packet_access_bytes = 0;
        /// Those of the packet accesses that were sent on a connection.
        uint64_t connection_accesses = 0, connection_access_bytes = 0;
        bool has_accesses() const;
        bool operator==(const PeerRecord&) const = default;
    };
    /// Sums over the collective calls of one kind: those with equal members up to `tried`.
    struct Collective {
        std::string site, kind, algorithm;
        uint64_t communicator = 0;  ///< the communicator's context id
        uint32_t size = 0;
        uint8_t size_class = 0;
        bool tried = false;  ///< whether another algorithm than the table's was used
        uint64_t calls = 0, bytes = 0, ns = 0;
        double squares = 0;  ///< sum of the squared times of the calls, ns²
        bool operator==(const Collective&) const = default;
    };
    /// Time waited in calls of one function at one place, by cause, in the order of profile::Cause.
    static constexpr size_t kCauses = 4;
    struct WaitRecord {
        std::string site, function;
        uint64_t ns[kCauses] = {};
        bool operator==(const WaitRecord&) const = default;
    };
    /// Accesses to a file by one function at one place: the calls, the bytes moved, and the time.
    struct FileRecord {
        std::string file, site, function;
        uint64_t calls = 0, bytes = 0, ns = 0;
        bool operator==(const FileRecord&) const = default;
    };
    /// Messages to all processes, of sizes up to `most` bytes and above half of it.
    struct SizeRecord {
        uint64_t most = 0, messages = 0, bytes = 0;
        bool operator==(const SizeRecord&) const = default;
    };
    struct ConnectionRecord {
        uint64_t at_ns = 0;  ///< time of the change, since the phase began
        job::JobId job = 0;
        uint32_t rank = 0;
        bool opened = false;
        bool operator==(const ConnectionRecord&) const = default;
    };
    /// Consecutive occurrences, from to `to`, of the phases of one name.
    struct PhaseRecord {
        std::string name;
        uint8_t mark = 0;  ///< profile::PhaseMark
        uint64_t from = 1, to = 1;
        uint64_t began_ns = 0;  ///< begin of the first occurrence, ns since 1970
        uint64_t ns = 0;        ///< total duration of the occurrences
        uint64_t waits_ns[kCauses] = {};
        std::vector<PeerRecord> peers;
        std::vector<Collective> collectives;
        std::vector<WaitRecord> waits;
        std::vector<ConnectionRecord> connections;
        std::vector<SizeRecord> sizes;  ///< only if the launcher knows them: knows_sizes()
        std::vector<FileRecord> files;  ///< as `sizes`
        bool operator==(const PhaseRecord&) const = default;
    };

    /// A program or library with call sites: a site "name+0x1234" is the offset 0x1234 in it.
    struct ModuleRecord {
        std::string name, path;
        std::string build_id;  ///< as hexadecimal digits; empty: it has none
        bool operator==(const ModuleRecord&) const = default;
    };
    /// The process's use of its cores since MPI_Init, in the last report.
    struct CoreRecord {
        std::vector<std::pair<uint32_t, uint32_t>> cpus;  ///< ranges of processors on which it may run: first and last
        uint64_t cpu_ns = 0;                              ///< processor time of all threads
        uint64_t polled_ns = 0;                           ///< time in waits without sleep
        uint64_t waited_ns = 0;                           ///< time for which this thread was ready to run and had no core
        bool operator==(const CoreRecord&) const = default;
    };

    bool last = false;  ///< the rank's last report: it has finalized MPI
    std::vector<PhaseRecord> phases;
    std::vector<ModuleRecord> modules{};  ///< modules that no earlier report of the rank has named
    CoreRecord cores{};                   ///< without `cpus`: not known
    bool lists_sizes = false;             ///< sizes follow the phases even if no phase has any; only if the launcher knows them
};

/// Sorts peers, calls, waits and files, as merge() requires of both arguments, and adds up duplicate peers.
void sort(ProfileReport::PhaseRecord& phase);
/// Adds the occurrences `later`, which follow those of `sum`. Keeps the first kMostConnections connections.
void merge(ProfileReport::PhaseRecord& sum, const ProfileReport::PhaseRecord& later);
inline constexpr size_t kMostConnections = 512;

/// Returns the approximate size of `phase` in memory, in bytes; its encoding is smaller.
size_t footprint(const ProfileReport::PhaseRecord& phase);

/// Returns whether programs of this wire version read reports with sizes, files, modules and the use of cores.
bool knows_sizes(uint32_t wire);

/// Returns whether programs that do not know sizes, files, modules and the use of cores refuse the report.
bool has_additions(const ProfileReport& report);
/// Removes sizes, files, modules and the use of cores, for programs that do not read them.
void remove_additions(ProfileReport& report);

std::string encode(const ProfileReport& message);
/// Returns false if `payload` is not exactly one report; `out` is then unspecified.
bool decode(std::string_view payload, ProfileReport& out);

}  // namespace starling::control
