// What is known of the processes of a job at an instant: what `starling why` collects on every host, and what its findings
// are drawn from. Plain values, no memory of anybody else's: an account (base/wait_report_page.h) is checked when it becomes this.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/wait_report_page.h"

namespace starling::hang {

/// A process by its job's id and its rank in that.
struct Process {
    uint64_t job = 0;
    uint32_t rank = 0;
    auto operator<=>(const Process&) const = default;
};

struct Communicator {
    uint64_t context = 0;
    uint32_t size = 0, rank = 0;
    bool inter = false;
    std::string name;                       ///< may be empty
    std::vector<WaitReportPage::Run> runs;  ///< its members by rank; of the remote group, if there is one; empty: not known

    template <class Visit>
    void each_member(Visit visit) const {
        for (const WaitReportPage::Run& run : runs)
            for (uint32_t i = 0; i < run.count; ++i)
                visit(Process{run.job, static_cast<uint32_t>(run.first + static_cast<int64_t>(i) * run.stride)});
    }
};

struct Operation {
    WaitReportPage::Kind kind = WaitReportPage::Kind::receive;
    int communicator = -1;  ///< in WaitReport::communicators; -1: not known
    bool of_collective = false, not_sent = false;
    bool from_anyone = false, any_tag = false;
    int rank = 0, tag = 0;
    Process peer;  ///< unless from_anyone
    uint64_t bytes = 0, moved = 0, context = 0;
};

/// Some of `total`.
struct Operations {
    std::vector<Operation> list;
    uint32_t total = 0;
};

/// A thread that waits.
struct Wait {
    std::string call;
    double seconds = 0;  ///< so far
    bool collective = false, everyone = false, any = false;
    int communicator = -1;  ///< of a collective operation
    uint32_t number = 0;    ///< of the operation in its communicator
    Operations waited;
};

/// An account, checked.
struct WaitReport {
    std::vector<Wait> waits;
    uint32_t more_waits = 0;
    std::vector<Communicator> communicators;
    Operations posted, sends, messages;
};

/// Nothing if the account contradicts itself. `now`: of the clock of its host, ns.
std::optional<WaitReport> check(const WaitReportPage& account, uint64_t now);

enum class Doing : uint8_t {
    starting,  ///< has not called MPI_Init
    computing,
    testing,  ///< asks again and again whether something has come
    waiting,
    stopped,  ///< by a signal or a debugger
    gone,     ///< its process does not exist any more, and its launcher has not said so yet
    finalized,
    exited,
    failed,
    not_started,
};
inline constexpr Doing kLastDoing = Doing::not_started;
const char* name(Doing doing);

/// One process at the moment of the report.
struct Rank {
    Process who;
    std::string host;
    int32_t pid = 0;
    Doing doing = Doing::starting;
    double cores = 0;                ///< processor time per time, of all its threads, while it was looked at
    double since_wait = -1;          ///< seconds since it was last seen waiting; -1: it never waited long enough to be seen
    double since_start = -1;         ///< seconds since MPI_Init; -1: not known
    std::optional<WaitReport> told;  ///< nothing: it has not waited for long, or what it told is not to be believed
    bool garbled = false;            ///< the latter
};

}  // namespace starling::hang
