// Tests groups: set operations, inclusion and exclusion with ranges, translation, comparison.
#include "check.h"

static int size, rank;
static MPI_Group world;

static void expect_members(MPI_Group group, int n, const int* members) {
    int count, ranks[64], translated[64];
    OK(MPI_Group_size(group, &count));
    EXPECT_INT(count, n);
    for (int i = 0; i < n; i++) ranks[i] = i;
    OK(MPI_Group_translate_ranks(group, n, ranks, world, translated));
    for (int i = 0; i < n; i++) EXPECT_INT(translated[i], members[i]);
    int mine, wanted = MPI_UNDEFINED;
    for (int i = 0; i < n; i++)
        if (members[i] == rank) wanted = i;
    OK(MPI_Group_rank(group, &mine));
    EXPECT_INT(mine, wanted);
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK(size >= 4 && size <= 64, "needs 4 to 64 ranks");
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    MPI_Group a, b, c, d;
    int first[] = {2, 0, 3}, second[] = {3, 1, 2}, result;
    OK(MPI_Group_incl(world, 3, first, &a));
    OK(MPI_Group_incl(world, 3, second, &b));
    expect_members(a, 3, first);
    OK(MPI_Group_union(a, b, &c));
    expect_members(c, 4, (int[]){2, 0, 3, 1});
    OK(MPI_Group_intersection(a, b, &d));
    expect_members(d, 2, (int[]){2, 3});
    OK(MPI_Group_compare(a, b, &result));
    EXPECT_INT(result, MPI_UNEQUAL);
    OK(MPI_Group_free(&c));
    OK(MPI_Group_difference(a, b, &c));
    expect_members(c, 1, (int[]){0});
    OK(MPI_Group_free(&c));
    CHECK(c == MPI_GROUP_NULL);
    OK(MPI_Group_free(&d));
    OK(MPI_Group_incl(world, 3, (int[]){3, 2, 0}, &d));
    OK(MPI_Group_compare(a, d, &result));
    EXPECT_INT(result, MPI_SIMILAR);
    OK(MPI_Group_free(&d));
    OK(MPI_Group_incl(world, 3, first, &d));
    OK(MPI_Group_compare(a, d, &result));
    EXPECT_INT(result, MPI_IDENT);
    OK(MPI_Group_free(&d));

    OK(MPI_Group_excl(world, 2, (int[]){1, 0}, &c));
    int rest[64];
    for (int i = 2; i < size; i++) rest[i - 2] = i;
    expect_members(c, size - 2, rest);
    OK(MPI_Group_free(&c));
    int ranges[2][3] = {{3, 2, -1}, {0, 1, 1}};
    OK(MPI_Group_range_incl(world, 2, ranges, &c));
    expect_members(c, 4, (int[]){3, 2, 0, 1});
    OK(MPI_Group_free(&c));
    int odd[1][3] = {{1, size - 1, 2}};
    OK(MPI_Group_range_excl(world, 1, odd, &c));
    int evens[64], n = 0;
    for (int i = 0; i < size; i += 2) evens[n++] = i;
    expect_members(c, n, evens);
    OK(MPI_Group_free(&c));

    OK(MPI_Group_incl(world, 0, NULL, &c));
    CHECK(c == MPI_GROUP_EMPTY, "no members: MPI_GROUP_EMPTY");
    OK(MPI_Group_size(MPI_GROUP_EMPTY, &n));
    EXPECT_INT(n, 0);
    OK(MPI_Group_rank(MPI_GROUP_EMPTY, &n));
    EXPECT_INT(n, MPI_UNDEFINED);
    OK(MPI_Group_difference(a, a, &c));
    OK(MPI_Group_size(c, &n));
    EXPECT_INT(n, 0);
    OK(MPI_Group_union(a, MPI_GROUP_EMPTY, &d));
    OK(MPI_Group_compare(a, d, &result));
    EXPECT_INT(result, MPI_IDENT);
    OK(MPI_Group_free(&d));
    int ask[3] = {0, MPI_PROC_NULL, 1}, told[3];
    OK(MPI_Group_translate_ranks(b, 3, ask, a, told));
    EXPECT_INT(told[0], 2);
    EXPECT_INT(told[1], MPI_PROC_NULL);
    EXPECT_INT(told[2], MPI_UNDEFINED);

    // A group outlives the communicator that it was taken from.
    MPI_Comm dup;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_group(dup, &d));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Group_compare(world, d, &result));
    EXPECT_INT(result, MPI_IDENT);
    OK(MPI_Group_free(&d));

    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    EXPECT_ERROR(MPI_Group_incl(world, 1, (int[]){size}, &d), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Group_incl(world, 1, (int[]){-2}, &d), MPI_ERR_RANK);
    OK(MPI_Group_free(&a));
    OK(MPI_Group_free(&b));
    OK(MPI_Group_free(&world));
    OK(MPI_Finalize());
    return 0;
}
