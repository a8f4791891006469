// What a process waits for, told to whoever looks from outside: one page in the process's region of the job segment, which
// `starling why` reads while the process goes on. It is written when a wait has lasted for a while, and again every now and
// then while it lasts, so a process that is served at once never touches it.
//
// Writer: the process, under the library's lock. Reader: any process of the user, at any time, without stopping the writer:
// copy_account(). The writer may be killed at any instruction and the page may hold anything: a reader takes nothing in it on
// trust.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling {

/// Times are now_ns() of this host. Sizes are bytes. Plain data: as it lies in the page.
struct alignas(4096) WaitReportPage {
    static constexpr uint32_t kLayout = 0x77687902;  ///< "why", 2; another layout has another number
    static constexpr uint32_t kWaits = 4, kCommunicators = 8, kOperations = 48, kRuns = 2;
    static constexpr uint32_t kWaited = 16, kOthers = 12;  ///< most operations in one list
    static constexpr uint8_t kNoCommunicator = 0xff;
    static constexpr int32_t kAnyRank = -1, kAnyTag = -1;

    /// Ranks first, first + stride, … of a job.
    struct Run {
        uint64_t job;
        uint32_t first, count;
        int32_t stride;
        uint32_t unused;
    };

    /// A communicator that the rest speaks of.
    struct Communicator {
        uint64_t context;
        uint32_t size, rank;  ///< of its group, of this process in it
        uint32_t runs;        ///< that its group has; more than kRuns: the list is not whole
        uint32_t inter;       ///< 1: the runs are those of the remote group
        Run run[kRuns];
        char name[40];  ///< empty: it has none
    };

    enum class Kind : uint8_t {
        receive = 1,
        send = 2,
        probe = 3,
        arriving = 4,  ///< a receive whose message is on its way, in pieces
        message = 5,   ///< one that has come and that no receive has taken
        member = 6,    ///< of a collective operation that it has not come to
        access = 7,    ///< of another's memory, which its owner has not carried out yet
        memory = 8,    ///< of this process, which somebody is to change
        lock = 9,      ///< that another has: of a window's target, or of OpenSHMEM
    };
    enum Flag : uint8_t {
        kOfCollective = 1,  ///< part of a collective operation: the tag is the library's
        kNotSent = 2,       ///< a send that has found no room yet
    };

    /// One message, sent or wanted.
    struct Operation {
        Kind kind;
        uint8_t communicator;  ///< place in the table, kNoCommunicator: not known here, see context
        uint8_t flags;
        uint8_t unused;
        int32_t rank;       ///< the other side in the communicator, kAnyRank
        int32_t tag;        ///< kAnyTag
        uint32_t peer;      ///< the other side's rank in its job; not for kAnyRank
        uint64_t peer_job;  ///< 0: not known
        uint64_t bytes;     ///< of the message or the buffer
        uint64_t moved;     ///< what of it has been moved
        uint64_t context;
    };

    /// Some of the operations: [first, first + count) of the table; `total` there are.
    struct Range {
        uint16_t first, count;
        uint32_t total;
    };

    /// A thread that waits.
    struct Wait {
        uint64_t since;
        int32_t thread;        ///< as the kernel numbers it
        uint8_t communicator;  ///< of a collective operation
        uint8_t collective;    ///< 1: it is one; `number` is its place among those of the communicator, from 1
        uint8_t any;           ///< 1: one of the operations is enough
        uint8_t everyone;      ///< 1: it ends when all have come; who has not is to be seen from what the others tell
        uint32_t number;
        Range waited;
        char call[40];  ///< the MPI function, as "MPI_Recv"
    };

    uint32_t version;  ///< odd while the rest is written
    uint32_t layout;
    uint64_t told;   ///< when it was written
    uint32_t waits;  ///< threads that wait; more than kWaits: the rest is left out
    uint32_t communicators;
    uint32_t operations;
    Range posted;    ///< receives that nobody waits for and that have no message yet
    Range sends;     ///< the same of sends that are not over
    Range messages;  ///< that have come and that no receive has taken
    Wait wait[kWaits];
    Communicator communicator[kCommunicators];
    Operation operation[kOperations];
};
static_assert(sizeof(WaitReportPage) == 4096);

/// Writes all of `from` but its version over `page`, so that copy_account() never sees half of it.
void write_account(WaitReportPage& page, const WaitReportPage& from);

/// A copy of what was written last, whole. False if there is none: nothing was written, it is of another layout, or the
/// writer was killed over it. Takes up to a few milliseconds where a writer is at it.
bool copy_account(const WaitReportPage& page, WaitReportPage& out);

}  // namespace starling
