#include "comm/group.h"

#include <algorithm>
#include <functional>

#include "base/no_destroy.h"
#include "base/pool.h"
#include "base/state.h"

namespace starling::comm {

namespace {

// Number of runs above which a group looks ranks up in an index, not run by run.
constexpr std::size_t kRunsWithoutIndex = 16;

STARLING_STATE NoDestroy<Pool<Group>> group_pool_storage;
constinit auto& group_pool = group_pool_storage.value;

}  // namespace

int GroupRun::position(uint32_t rank) const {
    const int64_t distance = static_cast<int64_t>(rank) - first;
    const int64_t i = distance / stride;
    return i >= 0 && i < count && i * stride == distance ? static_cast<int>(i) : -1;
}

struct Group::Member {
    link::Job* job;
    uint32_t rank;
    int32_t group_rank;
    bool operator<(const Member& other) const {
        if (job != other.job) return std::less<>()(job, other.job);
        return rank != other.rank ? rank < other.rank : group_rank < other.group_rank;
    }
};

Group::Group(std::vector<GroupRun> runs, uint32_t origin) : session(origin), runs_(std::move(runs)) {
    runs_.shrink_to_fit();
    if (runs_.size() > 1) starts_.reserve(runs_.size());
    for (const GroupRun& run : runs_) {
        if (runs_.size() > 1) starts_.push_back(size_);
        size_ += run.count;
        run.job->hold();
    }
}

Group::~Group() {
    for (const GroupRun& run : runs_) run.job->release();
}

link::Process Group::at(int rank) const {
    if (starts_.empty()) return runs_[0].at(rank);
    const auto next = std::upper_bound(starts_.begin(), starts_.end(), rank);
    const auto i = static_cast<std::size_t>(next - starts_.begin()) - 1;
    return runs_[i].at(rank - starts_[i]);
}

void Group::build_index() const {
    index_.reserve(static_cast<std::size_t>(size_));
    int group_rank = 0;
    for (const GroupRun& run : runs_)
        for (int i = 0; i < run.count; ++i) index_.push_back({run.job, run.at(i).rank, group_rank++});
    std::sort(index_.begin(), index_.end());
}

int Group::rank_of(const link::Process& process) const {
    if (runs_.size() > kRunsWithoutIndex) {
        if (index_.empty()) build_index();
        const auto found = std::lower_bound(index_.begin(), index_.end(), Member{process.job, process.rank, 0});
        const bool hit = found != index_.end() && found->job == process.job && found->rank == process.rank;
        return hit ? found->group_rank : MPI_UNDEFINED;
    }
    int start = 0;
    for (const GroupRun& run : runs_) {
        if (run.job == process.job)
            if (const int i = run.position(process.rank); i >= 0) return start + i;
        start += run.count;
    }
    return MPI_UNDEFINED;
}

void Group::release() {
    if (--references == 0) group_pool.destroy(this);
}

void GroupBuilder::add(GroupRun run) {
    // Append the run. The result is as if its processes were added one at a time. A run of one process accepts any other process of its job
    // as its second, whatever the distance; a longer run accepts only ranks that continue it.
    while (run.count > 0) {
        if (runs_.empty() || runs_.back().job != run.job) break;
        GroupRun& last = runs_.back();
        const int32_t distance = run.first - last.first;
        if (last.count == 1 && distance != 0)
            last.stride = distance;
        else if (last.count == 1 || distance != int64_t{last.stride} * last.count)
            break;
        const int taken = run.stride == last.stride ? run.count : 1;
        last.count += taken;
        run.count -= taken;
        if (run.count > 0) run.first += taken * run.stride;
    }
    if (run.count == 1) run.stride = 1;
    if (run.count > 0) runs_.push_back(run);
}

void GroupBuilder::add_slice(const Group& group, int first, int stride, int count) {
    while (count > 0) {
        // Take the part of the slice in the run that holds the slice's first process.
        const auto next = std::upper_bound(group.starts_.begin(), group.starts_.end(), first);
        const auto i = group.starts_.empty() ? 0 : static_cast<std::size_t>(next - group.starts_.begin()) - 1;
        const GroupRun& run = group.runs_[i];
        const int offset = first - (group.starts_.empty() ? 0 : group.starts_[i]);
        const int room = stride > 0 ? (run.count - 1 - offset) / stride : offset / -stride;
        const int taken = std::min(count, room + 1);
        add(GroupRun{run.job, static_cast<int32_t>(run.at(offset).rank), taken > 1 ? run.stride * stride : 1, taken});
        first += taken * stride;
        count -= taken;
    }
}

void GroupBuilder::add(const Group& group) {
    for (const GroupRun& run : group.runs()) add(run);
}

Group* GroupBuilder::build(uint32_t session) {
    Group* group = group_pool.create(std::move(runs_), session);
    runs_.clear();
    return group;
}

Group* empty_group() {
    STARLING_STATE static Group* empty = nullptr;
    if (!empty) empty = GroupBuilder().build();
    return empty;
}

Group* group_at(uint32_t pool_index) { return group_pool.at(pool_index); }

MPI_Group add_handle(Group* group) {
    if (group->size() == 0 && group != empty_group()) {
        group->release();
        group = empty_group()->retain();
    }
    ++group->handles;
    return to_handle(group);
}

void drop_handle(Group* group) {
    if (group == empty_group()) return;  // The empty group is predefined: freeing its handle has no effect.
    --group->handles;
    group->release();
}

}  // namespace starling::comm
