// Groups: ordered sets of processes, stored as runs of ranks, so that a group of a whole job takes the same memory whatever the job's size
// (MPI 5.0 section 7.3).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/handle.h"
#include "link/job.h"
#include "message/channel.h"
#include "mpi.h"

namespace starling::comm {

/// `count` ranks of one job: first, first + stride, … A run of one rank has stride 1.
struct GroupRun {
    link::Job* job = nullptr;
    int32_t first = 0;
    int32_t stride = 1;
    int32_t count = 0;
    link::Process at(int i) const { return {job, static_cast<uint32_t>(first + i * stride)}; }
    int32_t last() const { return first + stride * (count - 1); }
    /// Returns the position of `rank` in the run; -1 if it is not in it.
    int position(uint32_t rank) const;
    bool operator==(const GroupRun&) const = default;
};

/// An immutable group, created by GroupBuilder. The application's handles and the library's own references (communicators, ...) are counted
/// separately, so that a handle freed twice is an error, not a crash. Not thread-safe: needs the library's lock.
class Group final : public message::Roster {
  public:
    static constexpr uint32_t kMagic = 0x47726f75;
    uint32_t magic = 0;
    uint32_t pool_index = 0;
    uint32_t handles = 0;     ///< handles of the application; from_handle() requires at least one
    uint32_t references = 1;  ///< number of handles and of the library's own references
    /// The MPI session from which the group was derived, as pool index + 1; 0: none (for example MPI_COMM_WORLD's group). Groups and
    /// communicators that are created from a group belong to the same session.
    const uint32_t session;

    Group(std::vector<GroupRun> runs, uint32_t session);
    ~Group() override;

    int size() const override { return size_; }
    link::Process at(int rank) const override;
    /// Returns the rank of a process; MPI_UNDEFINED if it is not a member.
    int rank_of(const link::Process& process) const;
    int my_rank() const { return rank_of(link::self()); }
    std::span<const GroupRun> runs() const { return runs_; }
    /// Returns whether both groups have the same processes in the same order. Runs are canonical, so the time depends only on the number of
    /// runs.
    bool identical(const Group& other) const { return this == &other || runs_ == other.runs_; }

    Group* retain() {
        ++references;
        return this;
    }
    /// Drops one reference; the last one destroys the group.
    void release();

  private:
    friend class GroupBuilder;
    struct Member;
    void build_index() const;

    std::vector<GroupRun> runs_;
    std::vector<int32_t> starts_;  ///< rank of each run's first process; empty if there is one run
    int size_ = 0;
    mutable std::vector<Member> index_;  ///< members sorted by process; built at the first look-up in an irregular group
};

/// Collects processes in order and folds them into runs. The result depends only on the processes' order, not on how they were grouped into
/// calls.
class GroupBuilder {
  public:
    void add(const link::Process& process) { add(GroupRun{process.job, static_cast<int32_t>(process.rank), 1, 1}); }
    void add(GroupRun run);
    /// Adds `count` members of `group`: those with the ranks first, first + stride, … (stride is not 0).
    void add_slice(const Group& group, int first, int stride, int count);
    void add(const Group& group);
    /// Creates the group, with one reference. The builder is empty afterwards.
    Group* build(uint32_t session = 0);

  private:
    std::vector<GroupRun> runs_;
};

// Set operations; each returns a new reference. Callers check the arguments.
Group* union_of(const Group& a, const Group& b);
Group* intersection_of(const Group& a, const Group& b);
Group* difference_of(const Group& a, const Group& b);
/// Returns the members of `group` with those ranks, in that order (valid and distinct).
Group* include(const Group& group, std::span<const int> ranks);
/// Returns `group` without the marked members.
Group* exclude(const Group& group, const std::vector<bool>& excluded);
/// Returns the members of `a`, then those of `b`, whether they share members or not. Inter-communicators number the processes of both
/// groups this way.
Group* concatenate(const Group& a, const Group& b);
/// Returns MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL.
int compare(const Group& a, const Group& b);
/// Returns whether no process is in both groups.
bool disjoint(const Group& a, const Group& b);

/// Encodes a group for messages between processes: addresses of the jobs and runs of ranks (base/wire.h).
std::string encode(const Group& group);
/// Returns bytes that identify the group's processes and their order. They are the same in every process, on any host.
std::string fingerprint(const Group& group);
/// Decodes a group from untrusted bytes. Returns a new reference; nullptr with failure_text() if they are malformed.
Group* decode_group(std::string_view bytes);

/// Returns MPI_GROUP_EMPTY's group; lives as long as the process.
Group* empty_group();

Group* group_at(uint32_t pool_index);  ///< returns the group of MPI_Group_fromint; nullptr if there is none

/// Returns the group of a handle; nullptr for MPI_GROUP_NULL and for freed or invalid handles.
[[gnu::no_sanitize("vptr")]] inline Group* from_handle(MPI_Group handle) {
    if (handle == MPI_GROUP_EMPTY) return empty_group();
    Group* group = object_behind<Group>(handle);
    return group && group->handles > 0 ? group : nullptr;
}
/// Returns the handle of a group that has one; MPI_GROUP_NULL for nullptr.
inline MPI_Group to_handle(Group* group) {
    if (!group) return MPI_GROUP_NULL;
    return group == empty_group() ? MPI_GROUP_EMPTY : reinterpret_cast<MPI_Group>(group);
}
/// Turns a reference into a handle for the application; all empty groups become MPI_GROUP_EMPTY.
MPI_Group add_handle(Group* group);
/// Drops a handle of the application (MPI_Group_free).
void drop_handle(Group* group);

}  // namespace starling::comm
