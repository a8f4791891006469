// The wait report: what a process waits for, published in one page of its region of the job segment. `starling why` reads it while the
// process runs. The page is written when a wait has lasted for a while, and again periodically while it lasts, so a process that never
// waits long never touches it.
//
// Writer: the process, under the library's lock. Reader: any process of the same user, at any time, without stopping the writer:
// copy_account(). The writer may be killed at any instruction and the page may contain anything, so a reader checks all of it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling {

/// The layout of the page, plain data. Times are now_ns() of this host. Sizes are bytes.
struct alignas(4096) WaitReportPage {
    static constexpr uint32_t kLayout = 0x77687902;  ///< "why", 2; another layout has another number
    static constexpr uint32_t kWaits = 4, kCommunicators = 8, kOperations = 48, kRuns = 2;
    static constexpr uint32_t kWaited = 16, kOthers = 12;  ///< most operations in one list
    static constexpr uint8_t kNoCommunicator = 0xff;
    static constexpr int32_t kAnyRank = -1, kAnyTag = -1;

    /// The ranks first, first + stride, … of a job.
    struct RankRun {
        uint64_t job;
        uint32_t first, count;
        int32_t stride;
        uint32_t unused;
    };

    /// A communicator to which waits and operations refer.
    struct CommunicatorEntry {
        uint64_t context;
        uint32_t size, rank;  ///< size of the group; this process's rank in the group
        uint32_t runs;        ///< number of runs that form the group; if more than kRuns, the list is incomplete
        uint32_t inter;       ///< 1: an inter-communicator, and the runs are those of the remote group
        RankRun run[kRuns];
        char name[40];  ///< name of the communicator; empty: none
    };

    enum class OperationKind : uint8_t {
        receive = 1,
        send = 2,
        probe = 3,
        arriving = 4,  ///< a receive whose message is in transit, in fragments
        message = 5,   ///< a message that has arrived and that no receive has matched
        member = 6,    ///< a member that has not entered a collective operation yet
        access = 7,    ///< an access to another process's memory that its owner has not carried out yet
        memory = 8,    ///< a word of this process's memory that another process must change
        lock = 9,      ///< a lock that another process holds: of a window's target, or of OpenSHMEM
    };
    enum Flag : uint8_t {
        kOfCollective = 1,  ///< part of a collective operation: the tag is the library's
        kNotSent = 2,       ///< a send that has found no room yet
    };

    /// One message, sent or awaited, or another thing that a thread waits for (see OperationKind).
    struct OperationEntry {
        OperationKind kind;
        uint8_t communicator;  ///< index in `communicator`; kNoCommunicator: unknown here, see context
        uint8_t flags;
        uint8_t unused;
        int32_t rank;       ///< the peer's rank in the communicator, or kAnyRank
        int32_t tag;        ///< tag of the message, or kAnyTag
        uint32_t peer;      ///< the peer's rank in its job; unused for kAnyRank
        uint64_t peer_job;  ///< the peer's job; 0: unknown
        uint64_t bytes;     ///< length of the message or the buffer
        uint64_t moved;     ///< bytes of the message that are already transferred
        uint64_t context;
    };

    /// A part of the table of operations: [first, first + count). There are `total`; those that do not fit are left out.
    struct OperationRange {
        uint16_t first, count;
        uint32_t total;
    };

    /// A thread that waits.
    struct WaitEntry {
        uint64_t since;
        int32_t thread;        ///< the kernel's thread id
        uint8_t communicator;  ///< the communicator of a collective operation
        uint8_t collective;    ///< 1: the thread waits in a collective operation, number `number` (from 1) on its communicator
        uint8_t any;           ///< 1: the wait ends when one of its operations is complete
        uint8_t everyone;      ///< 1: the wait ends when all members have arrived; the members' reports show which have not
        uint32_t number;
        OperationRange waited;
        char call[40];  ///< the MPI function, as "MPI_Recv"
    };

    uint32_t version;  ///< odd while the rest of the page is being written
    uint32_t layout;
    uint64_t written_at;  ///< now_ns() when the page was written
    uint32_t waits;       ///< number of threads that wait; only the first kWaits are listed
    uint32_t communicators;
    uint32_t operations;
    OperationRange posted;    ///< receives without a message for which no thread waits
    OperationRange sends;     ///< incomplete sends for which no thread waits
    OperationRange messages;  ///< messages that have arrived and that no receive has matched
    WaitEntry wait[kWaits];
    CommunicatorEntry communicator[kCommunicators];
    OperationEntry operation[kOperations];
};
static_assert(sizeof(WaitReportPage) == 4096);

/// Copies all of `from` except its version to `page`. The version of `page` itself is changed before and after, so that copy_account()
/// recognizes a half-written page.
void write_account(WaitReportPage& page, const WaitReportPage& from);

/// Copies the last report that was written completely. Returns false if there is none: nothing was written, the layout is another one, or
/// the writer was killed while writing. Takes up to a few milliseconds while a writer is active.
bool copy_account(const WaitReportPage& page, WaitReportPage& out);

}  // namespace starling
