#include "launch/process/stack_traces.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "hang/judge.h"
#include "hang/text.h"
#include "launch/common/process_start.h"
#include "launch/process/stack_source.h"
#include "launch/process/stack_walk.h"

namespace starling::launch {

namespace {

constexpr std::chrono::seconds kOne{5}, kProgress{2};

/// Processes with equal stacks.
struct StackGroup {
    std::vector<const StackSubject*> subjects;
    std::set<std::string> states, waits, threads;
    unsigned long least_memory = ~0ul, most_memory = 0;  ///< KB
};

void add(StackGroup& group, const StackSubject& subject) {
    const ProcessFacts facts = process_facts(subject.pid);
    group.subjects.push_back(&subject);
    group.states.insert(facts.state);
    group.waits.insert(facts.waits_in);
    group.threads.insert(facts.threads);
    group.least_memory = std::min(group.least_memory, facts.memory_kb);
    group.most_memory = std::max(group.most_memory, facts.memory_kb);
}

std::string any_of(const std::set<std::string>& values) {
    return hang::listed(std::vector<std::string>(values.begin(), values.end()), " or ");
}

std::string pids_of(const StackGroup& group) {
    constexpr size_t kMostNamed = 8;
    std::vector<std::string> pids;
    for (const StackSubject* subject : group.subjects) {
        if (pids.size() == kMostNamed && group.subjects.size() > kMostNamed + 1) {
            pids.push_back(std::to_string(group.subjects.size() - kMostNamed) + " more");
            break;
        }
        pids.push_back(std::to_string(subject->pid));
    }
    return (group.subjects.size() == 1 ? "process " : "processes ") + hang::listed(pids);
}

std::string heading(const StackGroup& group, uint64_t home) {
    std::vector<hang::ProcessName> names;
    for (const StackSubject* subject : group.subjects) names.push_back(subject->process);
    std::string memory = std::to_string(group.least_memory);
    if (group.most_memory != group.least_memory) memory += " to " + std::to_string(group.most_memory);
    return "---- " + hang::names_of(std::move(names), home) + group.subjects[0]->suffix + ", " + pids_of(group) + "\n  state " +
           any_of(group.states) + ", waiting in " + any_of(group.waits) + ", threads " + any_of(group.threads) + ", memory " +
           memory + " kB\n";
}

/// The programs that take stacks where libdw cannot, or of Python's functions.
struct StackPrograms {
    std::string gdb, py_spy;
};

StackPrograms find_programs() {
    const char* path = std::getenv("PATH");
    const std::string where = path ? path : "/usr/bin:/bin";
    return {can_walk_stacks() ? std::string() : find_program("gdb", where, "/"), find_program("py-spy", where, "/")};
}

std::string stacks_of(pid_t pid, const StackPrograms& programs, bool all_frames, StackClock::time_point give_up) {
    std::string text;
    const auto limit = [&] { return std::min(StackClock::now() + kOne, give_up); };
    if (!programs.py_spy.empty() && runs_python(pid)) text = stacks_by_py_spy(programs.py_spy, pid, limit());
    if (!programs.gdb.empty()) return text + stacks_by_gdb(programs.gdb, pid, limit());
    return text + read_stacks(pid, all_frames, limit());
}

}  // namespace

std::string take_stacks(const std::vector<StackSubject>& subjects, uint64_t home, const StackOptions& options) {
    const StackPrograms programs = find_programs();
    const auto begin = StackClock::now(), give_up = begin + options.share;
    auto report = begin + kProgress;
    std::map<std::pair<std::string, std::string>, size_t> places;  // by suffix and stacks
    std::vector<std::pair<StackGroup, std::string>> groups;
    size_t taken = 0;
    for (const StackSubject& subject : subjects) {
        if (StackClock::now() >= give_up) break;
        const std::string text = stacks_of(subject.pid, programs, options.all_frames, give_up);
        const auto [place, added] = places.emplace(std::pair(subject.suffix, text), groups.size());
        if (added) groups.emplace_back(StackGroup(), text);
        add(groups[place->second].first, subject);
        ++taken;
        if (StackClock::now() < report) continue;
        report = StackClock::now() + kProgress;
        if (options.taken) options.taken(taken);
    }
    std::string all;
    for (const auto& [group, text] : groups) all += heading(group, home) + text;
    if (taken < subjects.size())
        all += hang::text("stacks of %zu of %zu processes (the %lld s for stacks are over)\n", taken, subjects.size(),
                          static_cast<long long>(options.share.count()));
    return all;
}

}  // namespace starling::launch
