// The state of a job's processes at one instant, as `starling why` collects it on every host for its conclusions. Plain values without
// pointers to shared memory: a wait report (base/wait_report_page.h) is checked when it is converted to this form.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/wait_report_page.h"

namespace starling::hang {

/// A process, identified by its job's id and its rank in that job.
struct ProcessName {
    uint64_t job = 0;
    uint32_t rank = 0;
    auto operator<=>(const ProcessName&) const = default;
};

struct Communicator {
    uint64_t context = 0;
    uint32_t size = 0, rank = 0;
    bool inter = false;
    std::string name;  ///< the communicator's name; may be empty
    /// Members of the communicator in the order of their ranks; of an inter-communicator, the remote group. Empty: not known.
    std::vector<WaitReportPage::RankRun> runs;

    template <class Visit>
    void each_member(Visit visit) const {
        for (const WaitReportPage::RankRun& run : runs)
            for (uint32_t i = 0; i < run.count; ++i)
                visit(ProcessName{run.job, static_cast<uint32_t>(run.first + static_cast<int64_t>(i) * run.stride)});
    }
};

struct PendingOperation {
    WaitReportPage::OperationKind kind = WaitReportPage::OperationKind::receive;
    int communicator = -1;  ///< index in WaitReport::communicators; -1: not known
    bool of_collective = false, not_sent = false;
    bool from_anyone = false, any_tag = false;
    int rank = 0, tag = 0;
    ProcessName peer;  ///< the process that sends or receives the message; not set if from_anyone
    uint64_t bytes = 0, moved = 0, context = 0;
};

/// The operations of one kind that are not complete: their number `total`, and a list of the first ones.
struct PendingOperations {
    std::vector<PendingOperation> list;
    uint32_t total = 0;
};

/// A thread that waits.
struct ThreadWait {
    std::string call;
    double seconds = 0;  ///< duration of the wait so far
    bool collective = false, everyone = false, any = false;
    int communicator = -1;  ///< the communicator of a collective operation
    uint32_t number = 0;    ///< number of the collective operation on its communicator
    PendingOperations waited;
};

/// A checked wait report.
struct WaitReport {
    std::vector<ThreadWait> waits;
    uint32_t more_waits = 0;
    std::vector<Communicator> communicators;
    PendingOperations posted, sends, messages;
};

/// Checks a wait report and converts it. Returns nothing if its values contradict each other. `now` is the time by the clock of its host,
/// ns.
std::optional<WaitReport> check(const WaitReportPage& account, uint64_t now);

enum class Doing : uint8_t {
    starting,  ///< has not called MPI_Init
    computing,
    testing,  ///< testing for completion in a loop
    waiting,
    stopped,  ///< stopped by a signal or a debugger
    ended,    ///< process has ended, and its launcher has not reported that yet
    finalized,
    exited,
    failed,
    not_started,
};
inline constexpr Doing kLastDoing = Doing::not_started;
const char* name(Doing doing);

/// One process at the moment of the report.
struct RankReport {
    ProcessName process;
    std::string host;
    int32_t pid = 0;
    Doing doing = Doing::starting;
    double cores = 0;                  ///< average number of cores that the process used while it was observed
    double since_wait = -1;            ///< seconds since its last wait; -1: it never waited long enough to be seen
    double since_start = -1;           ///< seconds since MPI_Init; -1: not known
    std::optional<WaitReport> report;  ///< wait report of the process; none: no long wait, or an invalid report
    bool garbled = false;              ///< whether the wait report is invalid
};

}  // namespace starling::hang
