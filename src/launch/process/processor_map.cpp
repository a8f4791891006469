#include "launch/process/processor_map.h"

#include <algorithm>
#include <map>

namespace starling::launch {

namespace {

// Returns the kind of part that counts as one processor.
ProcessorPart element_of(const ProcessorPlacement& wanted) {
    const bool small =
        wanted.counts_hwthreads || wanted.bind == ProcessorPart::hwthread || wanted.map == ProcessorPart::hwthread;
    return small ? ProcessorPart::hwthread : ProcessorPart::core;
}

// Returns the kind of part to which processes are bound. Without --bind-to it follows from the other options.
ProcessorPart bound_to(const ProcessorPlacement& wanted) {
    if (wanted.bind != ProcessorPart::unset) return wanted.bind;
    if (wanted.elements > 0) return element_of(wanted);
    if (wanted.map != ProcessorPart::unset) return wanted.map;
    return wanted.cpus.empty() ? element_of(wanted) : ProcessorPart::machine;
}

// Returns whether each process takes all its processors from one mapped part. They may belong to different parts otherwise.
bool is_within_part(const ProcessorPlacement& wanted) { return wanted.map > element_of(wanted) || wanted.per_part > 0; }

std::string too_few(uint32_t needed, uint32_t present, ProcessorPart kind, ProcessorPart within) {
    const std::string kinds = std::string(name_of(kind)) + (kind >= ProcessorPart::numa ? " parts" : "s");
    return "each process needs " + std::to_string(needed) + " " + kinds + ", and " +
           (within == ProcessorPart::unset ? "this host" : "a " + std::string(name_of(within)) + " of this host") + " has " +
           std::to_string(present) + " that mpiexec may use; use a smaller number in --map-by ...:PE=N or --bind-to";
}

}  // namespace

std::vector<ProcessorMap::ThreadIndices> ProcessorMap::parts_of(ProcessorPart kind, const ThreadIndices& among) const {
    std::map<uint32_t, ThreadIndices> parts;
    for (const uint32_t index : among) parts[threads_[index].in(kind)].push_back(index);
    std::vector<ThreadIndices> out;
    for (auto& [number, threads] : parts) out.push_back(std::move(threads));
    return out;
}

uint32_t ProcessorMap::load(const ThreadIndices& threads) const {
    uint32_t most = 0;
    for (const uint32_t index : threads) most = std::max(most, threads_[index].processes);
    return most;
}

uint32_t ProcessorMap::count_of(ProcessorPart part) const {
    ThreadIndices all;
    for (uint32_t i = 0; i < threads_.size(); ++i) all.push_back(i);
    return static_cast<uint32_t>(parts_of(part, all).size());
}

// Places a process on as many processors as it needs, all in one of the mapped parts.
std::string ProcessorMap::take_elements(const ProcessorPlacement& wanted, const std::vector<ThreadIndices>& parts,
                                        uint32_t process, ProcessorClaim& out) const {
    const ProcessorPart element = element_of(wanted);
    size_t chosen = 0;
    if (wanted.per_part > 0) {
        chosen = process / wanted.per_part % parts.size();
    } else {
        const auto placed = [&](const ThreadIndices& part) {
            uint32_t sum = 0;
            for (const uint32_t index : part) sum += threads_[index].processes;
            return sum;
        };
        const auto least = std::min_element(
            parts.begin(), parts.end(), [&](const ThreadIndices& a, const ThreadIndices& b) { return placed(a) < placed(b); });
        chosen = static_cast<size_t>(least - parts.begin());
    }
    std::vector<ThreadIndices> elements = parts_of(element, parts[chosen]);
    uint32_t needed = std::max(1u, wanted.elements);
    if (bound_to(wanted) == element) needed *= wanted.bind_count;
    if (needed > elements.size())
        return too_few(needed, static_cast<uint32_t>(elements.size()), element,
                       is_within_part(wanted) ? wanted.map : ProcessorPart::unset);
    std::stable_sort(elements.begin(), elements.end(),
                     [&](const ThreadIndices& a, const ThreadIndices& b) { return load(a) < load(b); });
    for (uint32_t i = 0; i < needed; ++i) out.threads.insert(out.threads.end(), elements[i].begin(), elements[i].end());
    std::sort(out.threads.begin(), out.threads.end());
    return {};
}

// Binds a placed process to its processors, or to those of the larger `parts` around them.
std::string ProcessorMap::widen(const ProcessorPlacement& wanted, const std::vector<ThreadIndices>& parts,
                                ProcessorClaim& claim) const {
    const ProcessorPart kind = bound_to(wanted);
    CPU_ZERO(&claim.cpus);
    claim.first = threads_[claim.threads[0]].cpu;
    const auto has_claimed = [&](const ThreadIndices& part) {
        return std::any_of(part.begin(), part.end(), [&](uint32_t index) {
            return std::binary_search(claim.threads.begin(), claim.threads.end(), index);
        });
    };
    if (kind <= element_of(wanted)) {
        for (const uint32_t index : claim.threads) CPU_SET(threads_[index].cpu, &claim.cpus);
        return {};
    }
    if (wanted.bind_count > parts.size())
        return too_few(wanted.bind_count, static_cast<uint32_t>(parts.size()), kind, ProcessorPart::unset);
    for (size_t i = 0; i < parts.size(); ++i) {
        if (!has_claimed(parts[i])) continue;
        for (uint32_t more = 0; more < wanted.bind_count; ++more)
            for (const uint32_t index : parts[(i + more) % parts.size()]) CPU_SET(threads_[index].cpu, &claim.cpus);
    }
    return {};
}

std::string ProcessorMap::take_listed(const ThreadIndices& cpus, ProcessorClaim& out) const {
    CPU_ZERO(&out.cpus);
    for (const uint32_t cpu : cpus) {
        const auto known =
            std::find_if(threads_.begin(), threads_.end(), [&](const HardwareThread& thread) { return thread.cpu == cpu; });
        if (known == threads_.end()) return "cpu " + std::to_string(cpu) + " is not one that mpiexec may use on this host";
        out.threads.push_back(static_cast<uint32_t>(known - threads_.begin()));
        CPU_SET(cpu, &out.cpus);
    }
    out.first = cpus[0];
    return {};
}

// The claims are in the order of mapping. Numbers them by part in turn, or part by part.
void ProcessorMap::order_by_rank(const ProcessorPlacement& wanted, std::vector<ProcessorClaim>& claims) const {
    const ProcessorPart kind = wanted.rank_fills ? std::max(wanted.map, ProcessorPart::core) : wanted.rank;
    if (kind == ProcessorPart::unset || kind == ProcessorPart::machine) return;
    std::map<uint32_t, std::vector<ProcessorClaim>> parts;
    for (ProcessorClaim& claim : claims) parts[threads_[claim.threads[0]].in(kind)].push_back(std::move(claim));
    claims.clear();
    if (wanted.rank_fills) {
        for (auto& [number, here] : parts) std::move(here.begin(), here.end(), std::back_inserter(claims));
        return;
    }
    for (size_t round = 0, left = 1; left > 0; ++round) {
        left = 0;
        for (auto& [number, here] : parts) {
            if (round < here.size()) claims.push_back(std::move(here[round]));
            if (round + 1 < here.size()) ++left;
        }
    }
}

std::string ProcessorMap::claim(const ProcessorPlacement& wanted, uint32_t count, std::vector<ProcessorClaim>& out) {
    ThreadIndices usable;
    for (uint32_t i = 0; i < threads_.size(); ++i) {
        const std::vector<uint32_t>& cpus = wanted.cpus;
        if (cpus.empty() || std::find(cpus.begin(), cpus.end(), threads_[i].cpu) != cpus.end()) usable.push_back(i);
    }
    if (usable.empty()) return "mpiexec may use none of the cpus " + cpus_text(wanted.cpus) + " of --cpu-list on this host";
    std::vector<ThreadIndices> mapped, bound;
    if (wanted.lists.empty()) {
        mapped = is_within_part(wanted) ? parts_of(wanted.map, usable) : std::vector<ThreadIndices>{usable};
        bound = parts_of(bound_to(wanted), usable);
    }
    std::string problem;
    for (uint32_t i = 0; i < count && problem.empty(); ++i) {
        ProcessorClaim& mine = out.emplace_back();
        if (!wanted.lists.empty()) {
            problem = take_listed(wanted.lists[i % wanted.lists.size()], mine);
        } else {
            problem = take_elements(wanted, mapped, i, mine);
            if (problem.empty()) problem = widen(wanted, bound, mine);
        }
        for (const uint32_t index : mine.threads) ++threads_[index].processes;
    }
    if (problem.empty()) {
        order_by_rank(wanted, out);
        return {};
    }
    for (const ProcessorClaim& mine : out) release(mine);
    out.clear();
    return problem;
}

void ProcessorMap::release(const ProcessorClaim& claim) {
    for (const uint32_t index : claim.threads) --threads_[index].processes;
}

std::string ProcessorMap::text_of(const ProcessorClaim& claim) const {
    std::vector<uint32_t> cpus;
    for (uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &claim.cpus)) cpus.push_back(cpu);
    std::map<uint32_t, bool> cores, packages;
    for (const HardwareThread& thread : threads_) {
        if (!CPU_ISSET(thread.cpu, &claim.cpus)) continue;
        cores[thread.in(ProcessorPart::core)] = packages[thread.in(ProcessorPart::package)] = true;
    }
    if (cores.size() == 1) {
        const uint32_t core = cores.begin()->first;
        const auto whole = std::count_if(threads_.begin(), threads_.end(),
                                         [&](const HardwareThread& thread) { return thread.in(ProcessorPart::core) == core; });
        if (static_cast<size_t>(whole) == cpus.size()) return "core " + std::to_string(claim.first);
    }
    std::vector<uint32_t> numbers;
    for (const auto& [number, used] : packages) numbers.push_back(number);
    return "cpus " + cpus_text(cpus) + " (package " + cpus_text(numbers) + ")";
}

}  // namespace starling::launch
