#include <algorithm>
#include <cctype>

#include "hang/report.h"

namespace starling::hang {

namespace {

template <size_t N>
bool read_text(const char (&from)[N], std::string& out) {
    const char* end = std::find(from, from + N, '\0');
    if (end == from + N) return false;
    out.assign(from, end);
    // The program chooses a communicator's name, so the text may contain control characters that move a terminal's cursor.
    for (char& c : out)
        if (std::iscntrl(static_cast<unsigned char>(c))) c = '?';
    return true;
}

double seconds_since(uint64_t then, uint64_t now) { return then < now ? static_cast<double>(now - then) * 1e-9 : 0; }

constexpr uint32_t kMostMembers = 1u << 20;

bool read_communicator(const WaitReportPage::CommunicatorEntry& from, Communicator& to) {
    to.context = from.context;
    to.size = from.size;
    to.rank = from.rank;
    to.inter = from.inter != 0;
    if (from.size == 0 || from.inter > 1 || !read_text(from.name, to.name)) return false;
    // A process group larger than a job can be is invalid, and visiting its members would take too long.
    if (from.runs > WaitReportPage::kRuns || from.size > kMostMembers) return true;
    uint64_t members = 0;
    for (uint32_t i = 0; i < from.runs; ++i) {
        const WaitReportPage::RankRun& run = from.run[i];
        const int64_t last = run.first + (static_cast<int64_t>(run.count) - 1) * run.stride;
        if (run.count == 0 || (run.stride == 0 && run.count > 1) || last < 0 || last > INT32_MAX || run.first > INT32_MAX)
            return false;
        members += run.count;
        to.runs.push_back(run);
    }
    return members == from.size;
}

bool read_operation(const WaitReportPage::OperationEntry& from, uint32_t communicators, PendingOperation& to) {
    if (from.kind < WaitReportPage::OperationKind::receive || from.kind > WaitReportPage::OperationKind::lock) return false;
    if (from.communicator != WaitReportPage::kNoCommunicator && from.communicator >= communicators) return false;
    to.kind = from.kind;
    to.communicator = from.communicator == WaitReportPage::kNoCommunicator ? -1 : from.communicator;
    to.of_collective = from.flags & WaitReportPage::kOfCollective;
    to.not_sent = from.flags & WaitReportPage::kNotSent;
    to.from_anyone = from.rank == WaitReportPage::kAnyRank;
    to.any_tag = from.tag == WaitReportPage::kAnyTag;
    to.rank = from.rank;
    to.tag = from.tag;
    to.peer = {from.peer_job, from.peer};
    to.bytes = from.bytes;
    to.moved = from.moved;
    to.context = from.context;
    return true;
}

bool read_operations(const WaitReportPage& from, const WaitReportPage::OperationRange& range, PendingOperations& to) {
    to.total = range.total;
    if (range.first > from.operations || range.count > from.operations - range.first || range.count > range.total) return false;
    for (uint32_t i = range.first; i < range.first + uint32_t{range.count}; ++i)
        if (!read_operation(from.operation[i], from.communicators, to.list.emplace_back())) return false;
    return true;
}

bool read_wait(const WaitReportPage& from, const WaitReportPage::WaitEntry& wait, uint64_t now, ThreadWait& to) {
    to.seconds = seconds_since(wait.since, now);
    to.collective = wait.collective;
    to.everyone = wait.everyone;
    to.any = wait.any;
    to.number = wait.number;
    if (wait.communicator != WaitReportPage::kNoCommunicator && wait.communicator >= from.communicators) return false;
    to.communicator = wait.communicator == WaitReportPage::kNoCommunicator ? -1 : wait.communicator;
    return read_text(wait.call, to.call) && read_operations(from, wait.waited, to.waited);
}

}  // namespace

std::optional<WaitReport> check(const WaitReportPage& account, uint64_t now) {
    WaitReport told;
    if (account.communicators > WaitReportPage::kCommunicators || account.operations > WaitReportPage::kOperations) return {};
    for (uint32_t i = 0; i < account.communicators; ++i)
        if (!read_communicator(account.communicator[i], told.communicators.emplace_back())) return {};
    const uint32_t waits = std::min(account.waits, WaitReportPage::kWaits);
    told.more_waits = account.waits - waits;
    for (uint32_t i = 0; i < waits; ++i)
        if (!read_wait(account, account.wait[i], now, told.waits.emplace_back())) return {};
    if (!read_operations(account, account.posted, told.posted) || !read_operations(account, account.sends, told.sends) ||
        !read_operations(account, account.messages, told.messages))
        return {};
    return told;
}

const char* name(Doing doing) {
    constexpr const char* kNames[] = {"starting", "computing", "testing", "waiting", "stopped",
                                      "gone",     "finalized", "exited",  "failed",  "not started"};
    return kNames[static_cast<int>(doing)];
}

}  // namespace starling::hang
