#include "mpi/comm/group.h"

#include <vector>

#include "base/error.h"
#include "comm/group.h"
#include "mpi/common/check.h"
#include "mpi/common/handles.h"

namespace starling::mpi {

namespace {

int bad_group() {
    if (phase != LibraryPhase::running) return not_running();
    return bad_handle(nullptr, MPI_ERR_GROUP, "group");
}

// The ranks of a range. read_range() checks a range and returns MPI_SUCCESS or an error class.
struct Slice {
    int first, stride, count;
};
int read_range(const int range[3], int size, Slice& slice) {
    const int first = range[0], last = range[1], stride = range[2];
    if (stride == 0) return fail(MPI_ERR_ARG, "the stride of a range is 0; use a positive or a negative number");
    const int64_t distance = int64_t{last} - first;
    if ((distance < 0) != (stride < 0) && distance != 0)
        return fail(MPI_ERR_ARG,
                    "the range from %d to %d with stride %d is empty; the stride's sign must lead from the first "
                    "rank to the last",
                    first, last, stride);
    // The last rank that the stride reaches must be valid (MPI 5.0 section 7.3.2). It may lie before the given `last`, which need not be
    // valid.
    const int64_t steps = distance / stride, end = first + steps * stride;
    if (first < 0 || first >= size || end < 0 || end >= size)
        return fail(MPI_ERR_RANK, "the range from %d to %d with stride %d has ranks outside the group of %d processes", first,
                    last, stride, size);
    slice = {first, stride, static_cast<int>(steps) + 1};
    return MPI_SUCCESS;
}

// Marks a rank; reports one that is outside the group or already marked.
int mark(std::vector<bool>& marked, int rank) {
    if (rank < 0 || rank >= static_cast<int>(marked.size()))
        return fail(MPI_ERR_RANK, "rank %d is not in the group of %d processes", rank, static_cast<int>(marked.size()));
    if (marked[static_cast<size_t>(rank)]) return fail(MPI_ERR_RANK, "rank %d is listed twice; list each rank once", rank);
    marked[static_cast<size_t>(rank)] = true;
    return MPI_SUCCESS;
}

int mark_ranks(std::vector<bool>& marked, int n, const int ranks[]) {
    if (n < 0) return fail(MPI_ERR_ARG, "the number of ranks, %d, is negative", n);
    if (n > 0 && !ranks) return null_pointer("ranks");
    for (int i = 0; i < n; ++i)
        if (const int error = mark(marked, ranks[i])) return error;
    return MPI_SUCCESS;
}

int mark_ranges(std::vector<bool>& marked, int n, int ranges[][3], std::vector<Slice>& slices) {
    if (n < 0) return fail(MPI_ERR_ARG, "the number of ranges, %d, is negative", n);
    if (n > 0 && !ranges) return null_pointer("ranges");
    for (int i = 0; i < n; ++i) {
        Slice slice;
        if (const int error = read_range(ranges[i], static_cast<int>(marked.size()), slice)) return error;
        for (int k = 0; k < slice.count; ++k)
            if (const int error = mark(marked, slice.first + k * slice.stride)) return error;
        slices.push_back(slice);
    }
    return MPI_SUCCESS;
}

using GroupCombination = comm::Group* (*)(const comm::Group&, const comm::Group&);

int combine(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup, GroupCombination operation) {
    Lock lock;
    const comm::Group* a = comm::from_handle(group1);
    const comm::Group* b = comm::from_handle(group2);
    if (phase != LibraryPhase::running || !a || !b) return bad_group();
    if (!newgroup) return null_argument(nullptr, "newgroup");
    *newgroup = comm::add_handle(operation(*a, *b));
    return MPI_SUCCESS;
}

/// One flag per rank of a group: whether the call has named that rank.
using Marks = std::vector<bool>;

/// Creates a group from the named members of another group, or from all except the named ones. `mark` checks and marks the named ranks,
/// `make` creates the group.
template <class Mark, class Make>
int choose_members(MPI_Group group, MPI_Group* newgroup, Mark mark, Make make) {
    Lock lock;
    const comm::Group* g = comm::from_handle(group);
    if (!g) return bad_group();
    if (!newgroup) return null_argument(nullptr, "newgroup");
    Marks marked(static_cast<size_t>(g->size()));
    if (const int error = mark(marked)) return raise(nullptr, error);
    *newgroup = comm::add_handle(make(*g, marked));
    return MPI_SUCCESS;
}

}  // namespace

int Group_size(MPI_Group group, int* size) {
    Lock lock;
    const comm::Group* g = comm::from_handle(group);
    if (!g) return bad_group();
    if (!size) return null_argument(nullptr, "size");
    *size = g->size();
    return MPI_SUCCESS;
}

int Group_rank(MPI_Group group, int* rank) {
    Lock lock;
    const comm::Group* g = comm::from_handle(group);
    if (!g) return bad_group();
    if (!rank) return null_argument(nullptr, "rank");
    *rank = g->my_rank();
    return MPI_SUCCESS;
}

int Group_translate_ranks(MPI_Group group1, int n, const int ranks1[], MPI_Group group2, int ranks2[]) {
    Lock lock;
    const comm::Group* from = comm::from_handle(group1);
    const comm::Group* to = comm::from_handle(group2);
    if (!from || !to) return bad_group();
    if (n < 0) return raise(nullptr, fail(MPI_ERR_ARG, "the number of ranks, %d, is negative", n));
    if (n > 0 && (!ranks1 || !ranks2)) return null_argument(nullptr, ranks1 ? "ranks2" : "ranks1");
    for (int i = 0; i < n; ++i) {
        const int rank = ranks1[i];
        if (rank == MPI_PROC_NULL) {
            ranks2[i] = MPI_PROC_NULL;
            continue;
        }
        if (rank < 0 || rank >= from->size())
            return raise(nullptr, fail(MPI_ERR_RANK, "rank %d is not in the group of %d processes", rank, from->size()));
        ranks2[i] = from == to ? rank : to->rank_of(from->at(rank));
    }
    return MPI_SUCCESS;
}

int Group_compare(MPI_Group group1, MPI_Group group2, int* result) {
    Lock lock;
    const comm::Group* a = comm::from_handle(group1);
    const comm::Group* b = comm::from_handle(group2);
    if (!a || !b) return bad_group();
    if (!result) return null_argument(nullptr, "result");
    *result = comm::compare(*a, *b);
    return MPI_SUCCESS;
}

int Group_union(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) {
    return combine(group1, group2, newgroup, comm::union_of);
}

int Group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) {
    return combine(group1, group2, newgroup, comm::intersection_of);
}

int Group_difference(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) {
    return combine(group1, group2, newgroup, comm::difference_of);
}

int Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group* newgroup) {
    return choose_members(
        group, newgroup, [&](Marks& marked) { return mark_ranks(marked, n, ranks); },
        [&](const comm::Group& g, const Marks&) {
            return comm::include(g, {ranks, static_cast<size_t>(n)});
        });
}

int Group_excl(MPI_Group group, int n, const int ranks[], MPI_Group* newgroup) {
    return choose_members(
        group, newgroup, [&](Marks& marked) { return mark_ranks(marked, n, ranks); }, comm::exclude);
}

int Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup) {
    std::vector<Slice> slices;
    return choose_members(
        group, newgroup, [&](Marks& marked) { return mark_ranges(marked, n, ranges, slices); },
        [&](const comm::Group& g, const Marks&) {
            comm::GroupBuilder builder;
            for (const Slice& slice : slices) builder.add_slice(g, slice.first, slice.stride, slice.count);
            return builder.build(g.session);
        });
}

int Group_range_excl(MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup) {
    std::vector<Slice> slices;
    return choose_members(
        group, newgroup, [&](Marks& marked) { return mark_ranges(marked, n, ranges, slices); }, comm::exclude);
}

int Group_free(MPI_Group* group) {
    Lock lock;
    if (!group) return null_argument(nullptr, "group");
    comm::Group* g = comm::from_handle(*group);
    if (!g) return bad_group();
    comm::drop_handle(g);
    *group = MPI_GROUP_NULL;
    return MPI_SUCCESS;
}

int Group_toint(MPI_Group group) {
    Lock lock;
    return to_int(group, comm::from_handle(group));
}

MPI_Group Group_fromint(int group) {
    Lock lock;
    return from_int<MPI_Group>(group, comm::group_at, MPI_GROUP_NULL);
}

}  // namespace starling::mpi
