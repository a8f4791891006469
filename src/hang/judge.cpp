#include "hang/judge.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "hang/collectives.h"
#include "hang/text.h"

namespace starling::hang {

namespace {

using OperationKind = WaitReportPage::OperationKind;

constexpr size_t kMostFindings = 8, kMostNamedRanks = 8;
/// Age in seconds from which a wait is examined. A younger wait may end as soon as the messages in transit arrive.
constexpr double kSettled = 0.2;

bool has_ended(Doing doing) { return doing == Doing::ended || doing >= Doing::finalized; }

/// The processes for which one waiting thread waits. It needs all of them or, if `any` is set, one.
struct Need {
    std::vector<size_t> ranks;  ///< indices in the report
    bool any = false;
    bool unknown = false;  ///< whether the thread also waits for a process that is not in the report
};

class Judge {
  public:
    Judge(const std::vector<RankReport>& ranks, uint64_t home) : ranks_(ranks), home_(home), collectives_(ranks) {
        for (size_t i = 0; i < ranks.size(); ++i) places_[ranks[i].process] = i;
        for (const RankReport& rank : ranks) needs_.push_back(needs_of(rank));
        find_stuck();
    }

    Verdict verdict() {
        const std::map<size_t, std::vector<size_t>> waiters = waiters_by_cause();
        find_disagreements();
        find_cycles();
        find_causes(waiters);
        if (found_.size() > kMostFindings) {
            const size_t more = found_.size() - kMostFindings;
            found_.resize(kMostFindings);
            found_.push_back(text("and %zu more findings of this kind", more));
        }
        const bool ended_awaited = std::any_of(waiters.begin(), waiters.end(),
                                               [this](const auto& each) { return ranks_[each.first].doing == Doing::exited; });
        return {std::move(found_), is_stuck(), ended_awaited};
    }

  private:
    /// Returns whether a wait exists that will not end, or a process is stopped or lost.
    bool is_stuck() const {
        for (size_t i = 0; i < ranks_.size(); ++i) {
            const Doing doing = ranks_[i].doing;
            if (is_stuck(i) || doing == Doing::stopped || doing == Doing::ended || doing == Doing::failed) return true;
        }
        return false;
    }

    bool waits(size_t i) const { return ranks_[i].doing == Doing::waiting && !needs_[i].empty(); }
    std::string named(size_t i) const { return name_of(ranks_[i].process, home_); }

    std::string named(const std::vector<size_t>& places) const {
        std::vector<ProcessName> processes;
        for (size_t i : places) processes.push_back(ranks_[i].process);
        return names_of(std::move(processes), home_);
    }

    // ---- which process waits for which

    void add(Need& need, const ProcessName& process) const {
        const auto found = places_.find(process);
        if (found == places_.end())
            need.unknown = true;
        else if (std::find(need.ranks.begin(), need.ranks.end(), found->second) == need.ranks.end())
            need.ranks.push_back(found->second);
    }

    void add_members(Need& need, const RankReport& rank, const Communicator& communicator) const {
        if (communicator.runs.empty()) need.unknown = true;
        communicator.each_member([&](const ProcessName& member) {
            if (member != rank.process) add(need, member);
        });
    }

    void add_missing(Need& need, const RankReport& rank, const ThreadWait& wait) const {
        const std::vector<ProcessName>* members = collectives_.missing(rank, wait);
        need.unknown |= !members;
        if (!members) return;
        for (const ProcessName& member : *members)
            if (member != rank.process) add(need, member);
    }

    std::vector<Need> needs_of(const RankReport& rank) const {
        std::vector<Need> needs;
        if (rank.doing != Doing::waiting || !rank.report) return needs;
        for (const ThreadWait& wait : rank.report->waits) {
            Need need;
            need.any = wait.any;
            if (wait.seconds < kSettled) {
                needs.emplace_back().unknown = true;
                continue;
            }
            need.unknown = wait.waited.total > wait.waited.list.size() && wait.any;
            for (const PendingOperation& operation : wait.waited.list) {
                if (!operation.from_anyone) {
                    add(need, operation.peer);
                } else if (operation.communicator >= 0) {
                    // A receive from any rank needs a message of one rank only. If the thread also waits for other operations, nothing can
                    // be concluded.
                    if (wait.waited.total == 1) {
                        need.any = true;
                        add_members(need, rank, rank.report->communicators[static_cast<size_t>(operation.communicator)]);
                    } else {
                        need.unknown = true;
                    }
                }
            }
            if (wait.everyone && wait.waited.list.empty() && wait.communicator >= 0) add_missing(need, rank, wait);
            if (need.ranks.empty()) need.unknown = true;
            needs.push_back(need);
        }
        if (rank.report->more_waits > 0) needs.emplace_back().unknown = true;
        return needs;
    }

    // ---- which processes cannot continue

    bool may_end(const Need& need) const {
        if (need.unknown && (need.any || need.ranks.empty())) return true;
        const auto can = [this](size_t i) { return can_continue_[i]; };
        return need.any ? std::any_of(need.ranks.begin(), need.ranks.end(), can)
                        : std::all_of(need.ranks.begin(), need.ranks.end(), can);
    }

    // A process that does not wait can continue, if it lives. A process that waits can continue if the processes that it waits for can.
    void find_stuck() {
        for (size_t i = 0; i < ranks_.size(); ++i) can_continue_.push_back(!waits(i) && !has_ended(ranks_[i].doing));
        for (bool changed = true; changed;) {
            changed = false;
            for (size_t i = 0; i < ranks_.size(); ++i) {
                if (can_continue_[i] || !waits(i)) continue;
                if (!std::any_of(needs_[i].begin(), needs_[i].end(), [this](const Need& need) { return may_end(need); }))
                    continue;
                can_continue_[i] = changed = true;
            }
        }
    }

    bool is_stuck(size_t i) const { return waits(i) && !can_continue_[i]; }

    /// Returns a stuck process for which a stuck process waits.
    std::optional<size_t> next_stuck(size_t i) const {
        for (const Need& need : needs_[i])
            for (size_t other : need.ranks)
                if (is_stuck(other)) return other;
        return {};
    }

    void find_cycles() {
        std::set<size_t> seen;
        for (size_t start = 0; start < ranks_.size(); ++start) {
            if (!is_stuck(start) || seen.count(start)) continue;
            std::vector<size_t> way;
            std::optional<size_t> at = start;
            while (at && seen.insert(*at).second) {
                way.push_back(*at);
                at = next_stuck(*at);
            }
            const auto first = at ? std::find(way.begin(), way.end(), *at) : way.end();
            if (first == way.end()) continue;  // the chain leads into a known cycle, or to a process that does not wait
            way.erase(way.begin(), first);
            report_cycle(way);
        }
    }

    void report_cycle(const std::vector<size_t>& cycle) {
        if (cycle.size() == 1) {
            found_.push_back("deadlock: " + named(cycle[0]) + " waits for itself");
            return;
        }
        std::string all = "deadlock: " + named(cycle[0]);
        for (size_t i = 1; i < cycle.size(); ++i) {
            if (i == kMostNamedRanks && cycle.size() > kMostNamedRanks + 1) {
                all += text(" …, %zu more …", cycle.size() - kMostNamedRanks - 1);
                i = cycle.size() - 1;
            }
            all += (i == 1 ? " waits for " : ", which waits for ") + named(cycle[i]);
        }
        found_.push_back(all + ", which waits for " + named(cycle[0]));
    }

    // ---- members in different collective operations

    void find_disagreements() {
        using CollectiveId = std::tuple<uint64_t, ProcessName, uint32_t>;  // communicator and number of the operation
        std::map<CollectiveId, std::map<std::string, std::vector<size_t>>> calls;
        std::map<CollectiveId, std::string> names;
        for (size_t i = 0; i < ranks_.size(); ++i) {
            each_collective(ranks_[i], [&](const ThreadWait& wait, const Communicator& communicator) {
                const CollectiveId place{communicator.context, first_member(communicator), wait.number};
                calls[place][wait.call].push_back(i);
                names[place] = communicator.name.empty() ? text("a communicator of %u", communicator.size) : communicator.name;
            });
        }
        for (const auto& [place, by_call] : calls) {
            if (by_call.size() < 2) continue;
            std::vector<std::string> parts;
            for (const auto& [call, members] : by_call)
                parts.push_back(named(members) + (members.size() == 1 ? " is in " : " are in ") + call);
            found_.push_back(
                "different collectives on " + names[place] + ": " + listed(parts) +
                text("; all members must make the same calls in the same order (this is call %u)", std::get<2>(place)));
        }
    }

    // ---- processes for which the others wait in the end

    std::set<size_t> causes_of(size_t start) const {
        std::set<size_t> seen{start}, causes;
        for (std::vector<size_t> open{start}; !open.empty();) {
            const size_t i = open.back();
            open.pop_back();
            if (!waits(i)) causes.insert(i);
            for (const Need& need : needs_[i]) {
                if (need.any && need.ranks.size() > 1) continue;  // one of several suffices, so none of them is the cause
                for (size_t other : need.ranks)
                    if (seen.insert(other).second) open.push_back(other);
            }
        }
        return causes;
    }

    /// Returns, for each process that keeps others waiting in the end, the processes that wait for it.
    std::map<size_t, std::vector<size_t>> waiters_by_cause() const {
        std::map<size_t, std::vector<size_t>> waiters;
        for (size_t i = 0; i < ranks_.size(); ++i) {
            if (!waits(i)) continue;
            for (size_t cause : causes_of(i)) waiters[cause].push_back(i);
        }
        return waiters;
    }

    void find_causes(const std::map<size_t, std::vector<size_t>>& waiters) {
        for (const auto& [cause, who] : waiters) {
            const Doing doing = ranks_[cause].doing;
            if (doing == Doing::waiting) continue;  // its own wait report shows the reason of its wait
            found_.push_back(named(who) + (who.size() == 1 ? " waits" : " wait") + ", in the end, for " + named(cause) +
                             ", which " + why(doing));
        }
        for (size_t i = 0; i < ranks_.size(); ++i) {
            const Doing doing = ranks_[i].doing;
            if ((doing == Doing::ended || doing == Doing::failed || doing == Doing::stopped) && !waiters.count(i))
                found_.push_back(named(i) + (doing == Doing::stopped ? " is stopped"
                                             : doing == Doing::ended ? " is gone"
                                                                     : " has failed"));
        }
    }

    static const char* why(Doing doing) {
        switch (doing) {
            case Doing::starting:
                return "has not called MPI_Init yet";
            case Doing::computing:
                return "computes";
            case Doing::testing:
                return "tests in a loop for something else";
            case Doing::stopped:
                return "is stopped";
            case Doing::ended:
                return "is gone";
            case Doing::finalized:
                return "has called MPI_Finalize";
            case Doing::failed:
                return "has failed";
            default:
                return "has ended";
        }
    }

    const std::vector<RankReport>& ranks_;
    const uint64_t home_;
    const CollectiveCalls collectives_;
    std::map<ProcessName, size_t> places_;
    std::vector<std::vector<Need>> needs_;
    std::vector<bool> can_continue_;
    std::vector<std::string> found_;
};

}  // namespace

Verdict judge(const std::vector<RankReport>& ranks, uint64_t home) { return Judge(ranks, home).verdict(); }

}  // namespace starling::hang
