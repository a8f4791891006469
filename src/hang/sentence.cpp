#include <algorithm>

#include "hang/judge.h"
#include "hang/state_text.h"
#include "hang/text.h"

namespace starling::hang {

namespace {

using OperationKind = WaitReportPage::OperationKind;

constexpr size_t kMostNamedOperations = 4;

/// Returns the form of a word for one subject or for several.
const char* number(const Others& others, const char* one, const char* several) { return others.most ? several : one; }

/// Returns "3.1 s", or "3.1 s to 3.4 s" for a group.
std::string durations(double least, double most) {
    const std::string first = duration(least), last = duration(most);
    return first == last ? first : first + " to " + last;
}

std::string bytes_text(uint64_t bytes) {
    if (bytes < 10000) return text("%llu bytes", static_cast<unsigned long long>(bytes));
    if (bytes < 10000 * 1024) return text("%llu KB", static_cast<unsigned long long>(bytes >> 10));
    return text("%llu MB", static_cast<unsigned long long>(bytes >> 20));
}

std::string communicator_name(const WaitReport& told, int index, uint64_t context) {
    if (index < 0)
        return text("a communicator that it does not have (context %llx)", static_cast<unsigned long long>(context >> 4));
    const Communicator& communicator = told.communicators[static_cast<size_t>(index)];
    if (!communicator.name.empty()) return communicator.name;
    return text("an unnamed communicator of %u (context %llx)", communicator.size,
                static_cast<unsigned long long>(communicator.context >> 4));
}

std::string communicator_of(const WaitReport& told, const PendingOperation& operation) {
    return communicator_name(told, operation.communicator, operation.context);
}

/// Returns the peer's name, with its rank in the communicator if that differs.
std::string other_side(const PendingOperation& operation, uint64_t home) {
    if (operation.from_anyone) return "any rank";
    std::string name = name_of(operation.peer, home);
    if (operation.rank != static_cast<int>(operation.peer.rank) && !operation.of_collective)
        name += text(" (rank %d there)", operation.rank);
    return name;
}

std::string tag_text(const PendingOperation& operation) {
    if (operation.of_collective) return "its part";
    return operation.any_tag ? "any tag" : text("tag %d", operation.tag);
}

/// Returns the text that follows "waits" in a sentence about one operation.
std::string wanted(const PendingOperation& operation, uint64_t home) {
    const std::string other = other_side(operation, home), tag = tag_text(operation);
    switch (operation.kind) {
        case OperationKind::receive:
            return text("for %s, %s (up to %s)", other.c_str(), tag.c_str(), bytes_text(operation.bytes).c_str());
        case OperationKind::probe:
            return text("for a message of %s, %s", other.c_str(), tag.c_str());
        case OperationKind::send:
            return text(operation.not_sent ? "for room at %s, %s (%s)" : "for %s to receive %s (%s)", other.c_str(),
                        tag.c_str(), bytes_text(operation.bytes).c_str());
        case OperationKind::arriving:
            return text("for the rest of a message of %s, %s (%s of %s have arrived)", other.c_str(), tag.c_str(),
                        bytes_text(operation.moved).c_str(), bytes_text(operation.bytes).c_str());
        case OperationKind::member:
            return text("for %s to call it", other.c_str());
        case OperationKind::access:
            return text("for %s to answer an access to its memory", other.c_str());
        case OperationKind::memory:
            return text("for its memory to be changed by %s", other.c_str());
        case OperationKind::lock:
            return operation.from_anyone ? "for a lock that another process holds"
                                         : text("for a lock that %s holds", other.c_str());
        case OperationKind::message:
            break;
    }
    return "for an unknown operation";
}

bool same_side(const PendingOperation& wanted, const PendingOperation& message) {
    return wanted.from_anyone || wanted.peer == message.peer;
}

/// Returns a description of an arrived message that matches the wanted one except for the tag or the communicator; empty if it does not.
std::string near_miss(const WaitReport& told, const PendingOperation& wanted, const PendingOperation& message,
                      const Others& others) {
    if (message.of_collective || !same_side(wanted, message)) return {};
    const bool same_communicator = wanted.context == message.context;
    const bool same_tag = wanted.any_tag || wanted.tag == message.tag;
    if (same_communicator == same_tag) return {};  // if both differ, the message is for another receive
    std::string what =
        name_of(message.peer, others.home) + " has sent " + number(others, "it ", "them ") + text("tag %d", message.tag);
    if (!same_communicator) what += " on " + communicator_of(told, message);
    return what + " (" + bytes_text(message.bytes) + ")";
}

void add_new(std::vector<std::string>& to, const std::string& what) {
    if (!what.empty() && std::find(to.begin(), to.end(), what) == to.end()) to.push_back(what);
}

std::vector<std::string> near_misses(const WaitReport& told, const ThreadWait& wait, const Others& others) {
    std::vector<std::string> found;
    for (const PendingOperation& operation : wait.waited.list) {
        if (operation.of_collective || (operation.kind != OperationKind::receive && operation.kind != OperationKind::probe))
            continue;
        for (const PendingOperation& message : told.messages.list) add_new(found, near_miss(told, operation, message, others));
    }
    return found;
}

/// Lists operations that the program may have forgotten, because they have nothing to do with the wait: posted receives, open sends, and
/// messages without a receive.
std::string rest(const WaitReport& told, size_t named) {
    std::vector<std::string> parts;
    const auto count = [&](uint32_t number, const char* one, const char* many) {
        if (number > 0) parts.push_back(text("%u %s", number, number == 1 ? one : many));
    };
    count(told.posted.total, "more receive posted", "more receives posted");
    count(told.sends.total, "more send open", "more sends open");
    count(told.messages.total - std::min<uint32_t>(told.messages.total, static_cast<uint32_t>(named)),
          "more message that no receive has taken", "more messages that no receive has taken");
    return listed(parts);
}

std::string shown(const PendingOperations& operations, bool any, uint64_t home) {
    std::vector<std::string> parts;
    for (const PendingOperation& operation : operations.list) {
        if (parts.size() == kMostNamedOperations) break;
        parts.push_back(wanted(operation, home));
    }
    if (parts.empty()) return {};
    const uint32_t more = operations.total - static_cast<uint32_t>(parts.size());
    std::string all = listed(parts, any ? " or " : " and ");
    if (more > 0) all += text(", and %u more", more);
    return " " + all;
}

bool uses_messages(const PendingOperation& operation) { return operation.kind < OperationKind::access; }

std::string collective_text(const RankReport& rank, const ThreadWait& wait, const Others& others) {
    const bool everyone = wait.everyone && wait.waited.list.empty();
    // The members of a group wait for different parts, but for the same missing members.
    if (everyone || others.most) {
        const std::vector<ProcessName>* missing = others.collectives ? others.collectives->missing(rank, wait) : nullptr;
        if (missing && !missing->empty()) return " for " + names_of(*missing, others.home) + " to call it";
    }
    return everyone ? " for all members to call it" : shown(wait.waited, wait.any, others.home);
}

std::string wait_text(const RankReport& rank, size_t index, const Others& others) {
    const WaitReport& told = *rank.report;
    const ThreadWait& wait = told.waits[index];
    std::string line = number(others, "waits in ", "wait in ") + wait.call;
    if (wait.collective) {
        line += " on " + communicator_name(told, wait.communicator, 0) + text(", collective %u there", wait.number);
        // An operation may wait for no message and no member: its own steps, such as system calls, have to end.
        if (const std::string awaited = collective_text(rank, wait, others); !awaited.empty()) line += "," + awaited;
    } else if (!wait.waited.list.empty()) {
        const PendingOperation& first = wait.waited.list.front();
        const bool alike = std::all_of(wait.waited.list.begin(), wait.waited.list.end(),
                                       [&](const PendingOperation& other) { return other.context == first.context; });
        if (uses_messages(first)) line += " on " + (alike ? communicator_of(told, first) : "several communicators");
        line += shown(wait.waited, wait.any, others.home);
    }
    const double longest = others.most ? others.most->report->waits[index].seconds : wait.seconds;
    return line + ", for " + durations(wait.seconds, longest);
}

std::string waiting_text(const RankReport& rank, const Others& others) {
    const WaitReport& told = *rank.report;
    std::string all;
    size_t named = 0;
    for (size_t i = 0; i < told.waits.size(); ++i) {
        all += (all.empty() ? "" : "; another thread ") + wait_text(rank, i, others);
        const std::vector<std::string> near = near_misses(told, told.waits[i], others);
        named += near.size();
        for (const std::string& what : near) all += "; " + what;
    }
    if (told.more_waits > 0) all += text("; %u more threads wait", told.more_waits);
    if (const std::string more = rest(told, named); !more.empty()) all += "; " + more;
    return all;
}

std::string computing_text(const RankReport& rank, const Others& others) {
    const RankReport& most = others.most ? *others.most : rank;
    const std::string least_share = text("%.0f", rank.cores * 100), most_share = text("%.0f", most.cores * 100);
    std::string line = is_idle(most)
                           ? std::string(number(others, "is outside the library and sleeps, or gets",
                                                "are outside the library and sleep, or get")) +
                                 " no processor time"
                           : number(others, "computes (", "compute (") +
                                 (least_share == most_share ? most_share : least_share + " to " + most_share) + " % of a core)";
    const std::string subject = number(others, ": it", ": they");
    if (rank.since_wait >= 0)
        line += subject + " last waited in the library " + durations(rank.since_wait, most.since_wait) + " ago";
    else if (rank.since_start >= 0)
        line += subject + number(others, " has", " have") + " not waited long in the library since " +
                number(others, "it was", "they were") + " started " + durations(rank.since_start, most.since_start) + " ago";
    return line;
}

}  // namespace

bool is_idle(const RankReport& rank) {
    constexpr double kHardlyAny = 0.02;
    return rank.cores < kHardlyAny;
}

std::string state_text(const RankReport& rank, const Others& others) {
    const char* host = rank.host.c_str();
    const std::string has = number(others, "has ", "have ");
    switch (rank.doing) {
        case Doing::starting:
            return has + "not called MPI_Init yet";
        case Doing::computing:
            return computing_text(rank, others);
        case Doing::testing:
            return std::string(number(others, "tests", "test")) +
                   " in a loop for something that has not happened (MPI_Test, MPI_Iprobe and similar calls)";
        case Doing::stopped:
            return text("is stopped, by a signal or a debugger; `kill -CONT %d` on %s resumes it", rank.pid, host) +
                   (rank.report && !rank.report->waits.empty() ? "; it " + waiting_text(rank, {others.home, others.collectives})
                                                               : "");
        case Doing::ended:
            return text("is gone: there is no process %d on %s any more", rank.pid, host);
        case Doing::finalized:
            return has + "called MPI_Finalize";
        case Doing::exited:
            return has + "ended";
        case Doing::failed:
            return has + "failed";
        case Doing::not_started:
            return "could not be started";
        case Doing::waiting:
            break;
    }
    if (rank.garbled)
        return std::string(number(others, "waits; its wait report is", "wait; their wait reports are")) + " not valid";
    if (rank.report && !rank.report->waits.empty()) return waiting_text(rank, others);
    return std::string(number(others, "waits", "wait")) + " in the library, not for long yet";
}

std::string duration(double seconds) {
    if (seconds < 100) return text("%.1f s", seconds);
    const auto whole = static_cast<unsigned long long>(seconds);
    if (whole < 3600) return text("%llu:%02llu min", whole / 60, whole % 60);
    return text("%llu:%02llu h", whole / 3600, whole / 60 % 60);
}

std::string sentence(const RankReport& rank, uint64_t home, const CollectiveCalls* collectives) {
    return name_of(rank.process, home) + " " + state_text(rank, {home, collectives});
}

}  // namespace starling::hang
