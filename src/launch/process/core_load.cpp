#include "launch/process/core_load.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>

#include "job/places.h"
#include "launch/common/file_text.h"
#include "mpi.h"

namespace starling::launch {

namespace {

using job::CpuLocation;
using job::RankState;

/// Removes a number from the front of `text`. Returns whether there was one.
bool parse_number(std::string_view& text, uint64_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return true;
}

std::string control_group() {
    // The line of the unified hierarchy (cgroup v2): "0::/path".
    const std::string groups = "\n" + text_of_file("/proc/self/cgroup");
    const size_t at = groups.find("\n0::/");
    if (at == std::string::npos) return "/";
    const size_t from = at + 4;
    return groups.substr(from, groups.find('\n', from) - from);
}

bool is_job_segment(const std::string& path) {
    constexpr std::string_view kName = "/memfd:starling-job";
    char target[64];
    const ssize_t length = readlink(path.c_str(), target, sizeof target);
    return length > 0 && std::string_view(target, static_cast<size_t>(length)).starts_with(kName);
}

}  // namespace

void CoreUse::add(const job::JobSegment& segment) {
    for (uint32_t i = 0; i < segment.header().local_ranks; ++i) {
        const RankState state = segment.cell(segment.local_rank(i)).state.load(std::memory_order_relaxed);
        if (state == RankState::started || state == RankState::initialized)
            add_at(segment.place(i).load(std::memory_order_relaxed));
    }
}

void CoreUse::add(const job::SegmentView& sight) {
    for (uint32_t i = 0; i < sight.ranks(); ++i) {
        const RankState state = sight.cell(i).state.load(std::memory_order_relaxed);
        if (state == RankState::started || state == RankState::initialized) add_at(sight.place(i));
    }
}

void CoreUse::add_at(uint32_t place) {
    const uint32_t word = place & CpuLocation::kCpu;
    if (word == CpuLocation::kNowhere)
        ++ranks_;
    else if (word <= CPU_SETSIZE)
        add(word - 1);
}

void CoreUse::add(uint32_t cpu) {
    ++ranks_;
    if (cpu >= on_.size()) on_.resize(cpu + 1);
    ++on_[cpu];
}

cpu_set_t CoreUse::least_used(const cpu_set_t& usable, const std::function<std::vector<uint32_t>(uint32_t)>& siblings) const {
    std::vector<uint32_t> beside(CPU_SETSIZE);
    for (uint32_t cpu = 0; cpu < on_.size(); ++cpu) {
        if (on_[cpu] == 0) continue;
        for (const uint32_t other : siblings(cpu))
            if (other < beside.size()) beside[other] += on_[cpu];
    }
    cpu_set_t best;
    CPU_ZERO(&best);
    uint64_t least = ~0ull;
    for (uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &usable)) continue;
        const uint64_t load = uint64_t{on(cpu)} << 32 | beside[cpu];
        if (load > least) continue;
        if (load < least) CPU_ZERO(&best);
        least = load;
        CPU_SET(cpu, &best);
    }
    return best;
}

std::vector<int32_t> launchers_in(std::string_view sockets, uint32_t user, int32_t except) {
    const std::string mark = "@starling-" + std::to_string(user) + "-";
    std::vector<int32_t> found;
    for (size_t at = sockets.find(mark); at != std::string_view::npos; at = sockets.find(mark, at + 1)) {
        std::string_view rest = sockets.substr(at + mark.size());
        uint64_t pid = 0;
        if (!parse_number(rest, pid) || !rest.starts_with('-') || pid > 1u << 30) continue;
        const auto launcher = static_cast<int32_t>(pid);
        if (launcher != except && std::find(found.begin(), found.end(), launcher) == found.end()) found.push_back(launcher);
    }
    return found;
}

std::vector<int32_t> other_launchers() { return launchers_in(text_of_file("/proc/net/unix"), geteuid(), getpid()); }

void add_jobs_of(int32_t launcher, CoreUse& use) {
    // Check the owner: any user can bind a socket name that claims to be a launcher of this user.
    struct stat status;
    const std::string process = "/proc/" + std::to_string(launcher), directory = process + "/fd";
    if (stat(process.c_str(), &status) != 0 || status.st_uid != geteuid()) return;
    DIR* open = opendir(directory.c_str());
    if (!open) return;
    while (const dirent* entry = readdir(open)) {
        if (!is_job_segment(directory + "/" + entry->d_name)) continue;
        job::SegmentView sight;
        if (job::SegmentView::open(launcher, std::atoi(entry->d_name), false, sight) == MPI_SUCCESS) use.add(sight);
    }
    closedir(open);
}

std::vector<uint32_t> parse_cpu_list(std::string_view list) {
    std::vector<uint32_t> cpus;
    for (uint64_t first = 0; parse_number(list, first);) {
        uint64_t last = first;
        if (list.starts_with('-')) {
            list.remove_prefix(1);
            if (!parse_number(list, last)) break;
        }
        for (uint64_t cpu = first; cpu <= last && cpu < CPU_SETSIZE; ++cpu) cpus.push_back(static_cast<uint32_t>(cpu));
        if (!list.starts_with(',')) break;
        list.remove_prefix(1);
    }
    return cpus;
}

std::vector<uint32_t> siblings_of(uint32_t cpu) {
    std::vector<uint32_t> all =
        parse_cpu_list(text_of_file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list"));
    std::erase(all, cpu);
    return all;
}

uint32_t cores_of_quota(std::string_view cpu_max) {
    uint64_t quota = 0, period = 0;
    if (!parse_number(cpu_max, quota) || !cpu_max.starts_with(' ')) return ~0u;
    cpu_max.remove_prefix(1);
    if (!parse_number(cpu_max, period) || period == 0) return ~0u;
    return static_cast<uint32_t>(std::min<uint64_t>(std::max<uint64_t>(1, (quota + period - 1) / period), ~0u));
}

uint32_t cores_allowed() {
    cpu_set_t usable;
    if (sched_getaffinity(0, sizeof usable, &usable) != 0) return 1;
    auto cores = static_cast<uint32_t>(std::max(1, CPU_COUNT(&usable)));
    for (std::string group = control_group();; group.resize(group.rfind('/'))) {
        cores = std::min(cores, cores_of_quota(text_of_file("/sys/fs/cgroup" + group + "/cpu.max")));
        if (group.empty() || group == "/") return cores;
    }
}

}  // namespace starling::launch
