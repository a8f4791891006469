// Tests the creation of communicators: dup, idup, split with undefined colors and keys, create, create_group by several groups at once,
// split_type, compare, names and info. Many are created, and freed in odd orders.
#include <cstring>
#include <vector>

#include "check.h"

namespace {

int rank, size;

void check_works(MPI_Comm comm, int wanted_rank, int wanted_size) {
    int r, n, sum = 0;
    OK(MPI_Comm_rank(comm, &r));
    OK(MPI_Comm_size(comm, &n));
    EXPECT_INT(r, wanted_rank);
    EXPECT_INT(n, wanted_size);
    OK(MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, comm));
    EXPECT_INT(sum, n * (n - 1) / 2);
}

/// Returns for each rank whether it is on this host.
std::vector<bool> neighbours() {
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length;
    OK(MPI_Get_processor_name(name, &length));
    std::vector<char> names(static_cast<size_t>(size) * sizeof name);
    OK(MPI_Allgather(name, sizeof name, MPI_CHAR, names.data(), sizeof name, MPI_CHAR, MPI_COMM_WORLD));
    std::vector<bool> here;
    for (int i = 0; i < size; ++i) here.push_back(!std::strcmp(name, &names[static_cast<size_t>(i) * sizeof name]));
    return here;
}

/// Returns how many of the ranks first, first + step, ... below `last` are on this host.
int count(const std::vector<bool>& here, int first, int last, int step = 1) {
    int n = 0;
    for (int i = first; i < last; i += step) n += here[static_cast<size_t>(i)];
    return n;
}

void duplicates() {
    MPI_Comm dup, again;
    int result;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    check_works(dup, rank, size);
    OK(MPI_Comm_compare(MPI_COMM_WORLD, dup, &result));
    EXPECT_INT(result, MPI_CONGRUENT);
    OK(MPI_Comm_compare(dup, dup, &result));
    EXPECT_INT(result, MPI_IDENT);
    OK(MPI_Comm_compare(dup, MPI_COMM_SELF, &result));
    EXPECT_INT(result, size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL);
    MPI_Request request;
    OK(MPI_Comm_idup(dup, &again, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    check_works(again, rank, size);
    OK(MPI_Comm_free(&dup));
    CHECK(dup == MPI_COMM_NULL);
    check_works(again, rank, size);
    OK(MPI_Comm_free(&again));

    // Starts several duplications of different parents and completes them in another order.
    MPI_Comm parents[3], copies[3];
    MPI_Request requests[3];
    for (MPI_Comm& parent : parents) OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    for (int i = 0; i < 3; i++) OK(MPI_Comm_idup(parents[i], &copies[i], &requests[i]));
    for (int i : {2, 0, 1}) OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    for (int i = 0; i < 3; i++) {
        check_works(copies[i], rank, size);
        OK(MPI_Comm_free(&copies[i]));
        OK(MPI_Comm_free(&parents[i]));
    }
}

void splits() {
    MPI_Comm part;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 3, -rank, &part));
    int n = (size - rank % 3 + 2) / 3;
    check_works(part, n - 1 - rank / 3, n);
    OK(MPI_Comm_free(&part));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 7, 5, &part));
    if (rank == 0) {
        CHECK(part == MPI_COMM_NULL);
    } else {
        check_works(part, rank - 1, size - 1);  // ranks with equal keys keep their old order
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, &part));
    CHECK(part == MPI_COMM_NULL);
    OK(MPI_Comm_split(MPI_COMM_WORLD, 1000000 + rank, 0, &part));
    check_works(part, 0, 1);
    OK(MPI_Comm_free(&part));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &part));
    const std::vector<bool> here = neighbours();
    const bool one_host = count(here, 0, size) == size;
    check_works(part, count(here, 0, rank), count(here, 0, size));
    int result;
    OK(MPI_Comm_compare(part, MPI_COMM_WORLD, &result));
    EXPECT_INT(result, one_host ? MPI_CONGRUENT : MPI_UNEQUAL);
    OK(MPI_Comm_free(&part));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, rank % 2 ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &part));
    if (rank % 2)
        CHECK(part == MPI_COMM_NULL);
    else {
        check_works(part, count(here, rank + 2, size, 2), count(here, 0, size, 2));
        OK(MPI_Comm_compare(part, MPI_COMM_WORLD, &result));
        EXPECT_INT(result, size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL);
        OK(MPI_Comm_free(&part));
    }
#if MPI_AT_LEAST(4, 1)
    // Splits by process set: MPI_COMM_TYPE_RESOURCE_GUIDED.
    const char* const sets[] = {"mpi://WORLD", "mpi://SELF", "mpi://no such set"};
    for (int i = 0; i < 3; ++i) {
        MPI_Info info;
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "mpi_pset_name", sets[i]));
        OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &part));
        OK(MPI_Info_free(&info));
        CHECK((part == MPI_COMM_NULL) == (i == 2));
        if (i == 2) continue;
        check_works(part, i ? 0 : rank, i ? 1 : size);
        OK(MPI_Comm_free(&part));
    }
#endif
    // Communicators of the same processes in another order must compare as similar.
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &part));
    OK(MPI_Comm_compare(part, MPI_COMM_WORLD, &result));
    EXPECT_INT(result, size == 1 ? MPI_CONGRUENT : MPI_SIMILAR);
    OK(MPI_Comm_free(&part));
}

void from_groups() {
    MPI_Group world, evens;
    MPI_Comm comm;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    std::vector<int> members;
    for (int r = (size - 1) / 2 * 2; r >= 0; r -= 2) members.push_back(r);  // even ranks, descending
    OK(MPI_Group_incl(world, (int)members.size(), members.data(), &evens));
    OK(MPI_Comm_create(MPI_COMM_WORLD, evens, &comm));
    if (rank % 2)
        CHECK(comm == MPI_COMM_NULL);
    else {
        check_works(comm, (int)members.size() - 1 - rank / 2, (int)members.size());
        OK(MPI_Comm_free(&comm));
    }
    // Disjoint groups in one call: MPI allows each process to pass its own group.
    MPI_Group mine;
    std::vector<int> half;
    for (int r = rank % 2; r < size; r += 2) half.push_back(r);
    OK(MPI_Group_incl(world, (int)half.size(), half.data(), &mine));
    OK(MPI_Comm_create(MPI_COMM_WORLD, mine, &comm));
    check_works(comm, rank / 2, (int)half.size());
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm));
    CHECK(comm == MPI_COMM_NULL);

    // Only members call create_group; overlapping groups at the same time with different tags.
    for (int round = 0; round < 3; round++) {
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, mine, 3 + rank % 2, &comm));
        check_works(comm, rank / 2, (int)half.size());
        OK(MPI_Comm_free(&comm));
    }
    if (size > 2) {
        int low = rank / 2 * 2, pair[] = {low, low + 1};
        if (pair[1] < size) {
            MPI_Group two;
            OK(MPI_Group_incl(world, 2, pair, &two));
            OK(MPI_Comm_create_group(MPI_COMM_WORLD, two, 9, &comm));
            check_works(comm, rank % 2, 2);
            OK(MPI_Comm_free(&comm));
            OK(MPI_Group_free(&two));
        }
    }
    OK(MPI_Group_free(&mine));
    OK(MPI_Group_free(&evens));
    OK(MPI_Group_free(&world));
}

void names_and_info() {
    char name[MPI_MAX_OBJECT_NAME];
    int length, flag;
    OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &length));
    CHECK(strcmp(name, "MPI_COMM_WORLD") == 0, "%s", name);
    OK(MPI_Comm_get_name(MPI_COMM_SELF, name, &length));
    CHECK(strcmp(name, "MPI_COMM_SELF") == 0, "%s", name);
    MPI_Comm comm, named;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_get_name(comm, name, &length));
    EXPECT_INT(length, 0);
    CHECK(name[0] == 0, "a dup must not inherit the name: %s", name);
    OK(MPI_Comm_set_name(comm, "a name with spaces"));
    OK(MPI_Comm_get_name(comm, name, &length));
    CHECK(strcmp(name, "a name with spaces") == 0 && length == 18, "%s", name);
    MPI_Info info, used;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    OK(MPI_Comm_dup_with_info(comm, info, &named));
    OK(MPI_Comm_get_info(named, &used));
    CHECK(used != MPI_INFO_NULL);
    OK(MPI_Info_free(&used));
    OK(MPI_Comm_set_info(comm, info));
    OK(MPI_Comm_get_info(comm, &used));
    OK(MPI_Info_free(&used));
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_test_inter(comm, &flag));
    EXPECT_INT(flag, 0);
    OK(MPI_Comm_free(&named));
    OK(MPI_Comm_free(&comm));
}

void many() {
    const int kMany = size > 4 ? 30 : 100;
    std::vector<MPI_Comm> comms(kMany);
    for (MPI_Comm& comm : comms) OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int i = 0; i < kMany; i += 2) OK(MPI_Comm_free(&comms[i]));
    for (int i = 1; i < kMany; i += 2) {
        int value = rank == i % size ? i : -1;
        OK(MPI_Bcast(&value, 1, MPI_INT, i % size, comms[i]));
        EXPECT_INT(value, i);
    }
    for (int i = kMany - 1; i >= 0; i -= 2) OK(MPI_Comm_free(&comms[i]));
    for (int i = 0; i < (size > 4 ? 100 : 500); i++) {  // enough communicators for a leak to exhaust a resource
        MPI_Comm comm;
        OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
        OK(MPI_Comm_free(&comm));
        if (i % 10) continue;
        OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &comm));
        OK(MPI_Comm_free(&comm));
    }
}

// Frees a communicator while a receive is pending: the request must still complete.
void freed_while_active() {
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    int to = (rank + 1) % size, from = (rank + size - 1) % size, in = -1;
    MPI_Request requests[2];
    OK(MPI_Irecv(&in, 1, MPI_INT, from, 1, comm, &requests[0]));
    OK(MPI_Isend(&rank, 1, MPI_INT, to, 1, comm, &requests[1]));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    EXPECT_INT(in, from);
}

}  // namespace

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    duplicates();
    splits();
    from_groups();
    names_and_info();
    many();
    freed_while_active();
    OK(MPI_Finalize());
    return 0;
}
