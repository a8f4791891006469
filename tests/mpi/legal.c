// Calls at the edge of what is legal must succeed. Arguments that are not significant at this process hold garbage; nothing is moved from
// or to null pointers. Displacements are negative, groups and grids are empty, partners are MPI_PROC_NULL.
#include "check.h"

static int rank, size, last;
static const MPI_Comm world = MPI_COMM_WORLD;
// An invalid pointer, for arguments that the library must not dereference.
static void* volatile nowhere = (void*)(intptr_t)0x11;  // volatile hides it from compilers
#define NO_TYPE ((MPI_Datatype)(intptr_t)0x11)
#define NO_COMM ((MPI_Comm)(intptr_t)0x11)
enum { kBadCount = -9 };

static MPI_Datatype type_of(int count) {
    MPI_Datatype type;
    OK(MPI_Type_contiguous(count, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

static MPI_Datatype absolute(void* address) {
    const int one = 1;
    MPI_Aint place;
    MPI_Datatype type;
    OK(MPI_Get_address(address, &place));
    OK(MPI_Type_create_hindexed(1, &one, &place, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

static void nothing_between_two(void) {
    MPI_Status status;
    MPI_Request request;
    MPI_Datatype empty = type_of(0);
    int flag, value = 5, index, count;
    OK(MPI_Isend(NULL, 0, MPI_INT, rank, 1, world, &request));
    OK(MPI_Recv(NULL, 0, MPI_INT, rank, 1, world, &status));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Isend(NULL, 7, empty, rank, 1, world, &request));
    OK(MPI_Recv(NULL, 9, empty, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &status));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, world));
    OK(MPI_Ssend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, world));
    OK(MPI_Bsend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, world));
    OK(MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, world, &status));
    OK(MPI_Probe(MPI_PROC_NULL, MPI_ANY_TAG, world, &status));
    OK(MPI_Iprobe(MPI_PROC_NULL, MPI_ANY_TAG, world, &flag, MPI_STATUS_IGNORE));
    OK(MPI_Sendrecv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, NULL, 0, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, world, &status));
    OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
    OK(MPI_Testall(0, NULL, &flag, NULL));
    OK(MPI_Waitany(0, NULL, &index, &status));
    EXPECT_INT(index, MPI_UNDEFINED);
    OK(MPI_Waitsome(0, NULL, &count, NULL, NULL));
    EXPECT_INT(count, MPI_UNDEFINED);
    OK(MPI_Startall(0, NULL));
    MPI_Datatype at = absolute(&value);
    int other = 0;
    OK(MPI_Sendrecv(MPI_BOTTOM, 1, at, rank, 2, &other, 1, MPI_INT, rank, 2, world, &status));
    EXPECT_INT(other, value);
    OK(MPI_Type_free(&at));
    OK(MPI_Type_free(&empty));
}

static void partitions(void) {
#if MPI_AT_LEAST(4, 0)
    MPI_Request send, receive;
    int value[2] = {1, 2};
    OK(MPI_Psend_init(NULL, 0, 3, MPI_INT, (rank + 1) % size, 3, world, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(NULL, 0, 3, MPI_INT, (rank + last) % size, 3, world, MPI_INFO_NULL, &receive));
    OK(MPI_Start(&send));
    OK(MPI_Start(&receive));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
    OK(MPI_Psend_init(value, 2, 1, MPI_INT, MPI_PROC_NULL, 3, world, MPI_INFO_NULL, &send));
    OK(MPI_Start(&send));
    OK(MPI_Pready_range(0, 1, send));
    OK(MPI_Pready_list(0, NULL, send));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&send));
#endif
}

static void datatypes(void) {
    MPI_Datatype type, outer;
    const int lengths[3] = {1, 0, 2}, backwards[3] = {4, 9, -2};
    const MPI_Aint addresses[2] = {16, -8};
    const MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
    int numbers[4], bytes;
    OK(MPI_Type_indexed(0, NULL, NULL, MPI_INT, &type));
    OK(MPI_Type_free(&type));
    OK(MPI_Type_create_struct(0, NULL, NULL, NULL, &type));
    OK(MPI_Type_get_envelope(type, &numbers[0], &numbers[1], &numbers[2], &numbers[3]));
    OK(MPI_Type_get_contents(type, numbers[0], 0, 0, numbers, NULL, NULL));
    OK(MPI_Type_free(&type));
    OK(MPI_Type_vector(0, 5, -3, MPI_INT, &type));
    OK(MPI_Type_free(&type));
    OK(MPI_Type_vector(3, 2, -7, MPI_INT, &type));
    OK(MPI_Type_free(&type));
    OK(MPI_Type_indexed(3, lengths, backwards, MPI_INT, &type));
    OK(MPI_Type_create_resized(type, 12, -40, &outer));
    OK(MPI_Type_size(outer, &bytes));
    EXPECT_INT(bytes, 12);
    OK(MPI_Type_free(&outer));
    OK(MPI_Type_free(&type));
    OK(MPI_Type_create_struct(2, lengths, addresses, types, &type));
    OK(MPI_Type_free(&type));
}

static void packing(void) {
    char packed[8];
    int position = 0, value = 7, size_of;
    MPI_Aint at = 0;
    OK(MPI_Pack(NULL, 0, MPI_INT, NULL, 0, &position, world));
    OK(MPI_Unpack(NULL, 0, &position, NULL, 0, MPI_INT, world));
    OK(MPI_Pack_external("external32", NULL, 0, MPI_INT, NULL, 0, &at));
    OK(MPI_Pack(&value, 1, MPI_INT, packed, 4, &position, world));
    EXPECT_INT(position, 4);
    OK(MPI_Unpack(packed, 4, &position, NULL, 0, MPI_INT, world));
    OK(MPI_Pack_size(0, MPI_INT, world, &size_of));
}

static void groups(void) {
    MPI_Group all, made, empty = MPI_GROUP_EMPTY;
    int n, result, ranks[2] = {MPI_PROC_NULL, 0};
    int beyond[1][3] = {{0, size, size + 1}}, before[1][3] = {{last, -1, -(size + 1)}};
    OK(MPI_Comm_group(world, &all));
    OK(MPI_Group_incl(all, 0, NULL, &made));
    OK(MPI_Group_compare(made, empty, &result));
    EXPECT_INT(result, MPI_IDENT);
    OK(MPI_Group_free(&made));
    OK(MPI_Group_excl(all, 0, NULL, &made));
    OK(MPI_Group_translate_ranks(made, 2, ranks, all, ranks));
    EXPECT_INT(ranks[0], MPI_PROC_NULL);
    OK(MPI_Group_translate_ranks(empty, 0, NULL, all, NULL));
    OK(MPI_Group_free(&made));
    // The range's last rank is invalid, but its stride does not reach that rank: the group must contain one member.
    OK(MPI_Group_range_incl(all, 1, beyond, &made));
    OK(MPI_Group_size(made, &n));
    EXPECT_INT(n, 1);
    OK(MPI_Group_free(&made));
    OK(MPI_Group_range_excl(all, 1, before, &made));
    OK(MPI_Group_size(made, &n));
    EXPECT_INT(n, last);
    OK(MPI_Group_free(&made));
    OK(MPI_Group_range_incl(all, 0, NULL, &made));
    OK(MPI_Group_free(&made));
    OK(MPI_Group_union(empty, empty, &made));
    OK(MPI_Group_free(&made));
    OK(MPI_Group_free(&all));
}

static void communicators(void) {
    MPI_Comm made, inter, half;
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    OK(MPI_Comm_create(world, MPI_GROUP_EMPTY, &made));
    CHECK(made == MPI_COMM_NULL);
    OK(MPI_Comm_split(world, MPI_UNDEFINED, -1, &made));
    CHECK(made == MPI_COMM_NULL);
    OK(MPI_Comm_split(world, 0x7fffffff, -rank, &made));
    OK(MPI_Comm_free(&made));
    OK(MPI_Comm_get_name(MPI_COMM_NULL, name, &length));
    if (size < 2) return;
    OK(MPI_Comm_split(world, rank % 2, 0, &half));
    // The peer communicator, the remote leader and the tag are significant only at the leaders.
    if (rank < 2)
        OK(MPI_Intercomm_create(half, 0, world, 1 - rank, 5, &inter));
    else
        OK(MPI_Intercomm_create(half, 0, NO_COMM, kBadCount, kBadCount, &inter));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

static void topologies(void) {
    MPI_Comm made;
    int value = 1, n, sources, targets, weighted, dims[2] = {0, 2}, periods[2] = {0, 0}, where;
    OK(MPI_Cart_create(world, 0, NULL, NULL, 0, &made));
    if (made != MPI_COMM_NULL) {
        OK(MPI_Cartdim_get(made, &n));
        OK(MPI_Cart_get(made, 0, NULL, NULL, NULL));
        OK(MPI_Cart_coords(made, 0, 0, NULL));
        OK(MPI_Comm_free(&made));
    }
    OK(MPI_Cart_map(world, 2, dims, periods, &where));
    EXPECT_INT(where, MPI_UNDEFINED);
    OK(MPI_Graph_create(world, 0, NULL, NULL, 0, &made));
    CHECK(made == MPI_COMM_NULL);
    OK(MPI_Dist_graph_create(world, 0, NULL, NULL, NULL, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &made));
    OK(MPI_Comm_free(&made));
    OK(MPI_Dist_graph_create_adjacent(world, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made));
    OK(MPI_Dist_graph_neighbors_count(made, &sources, &targets, &weighted));
    OK(MPI_Dist_graph_neighbors(made, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED));
    OK(MPI_Neighbor_allgather(&value, 1, MPI_INT, NULL, 1, MPI_INT, made));
    OK(MPI_Neighbor_alltoall(NULL, 1, MPI_INT, NULL, 1, MPI_INT, made));
    OK(MPI_Neighbor_alltoallv(NULL, NULL, NULL, MPI_INT, NULL, NULL, NULL, MPI_INT, made));
    OK(MPI_Neighbor_alltoallw(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, made));
    OK(MPI_Comm_free(&made));
}

static int* integers(int n) {
    int* made = calloc((size_t)n, sizeof(int));
    CHECK(made);
    return made;
}

// Arguments that are significant only at the root are garbage elsewhere; with MPI_IN_PLACE the root's own are garbage too.
static void rooted(void) {
    int *all = integers(size), *counts = integers(size), *places = integers(size), mine = 10 + rank, sum = 0;
    const int root = last, is_root = rank == root;
    for (int i = 0; i < size; i++) counts[i] = 1, places[i] = i - root, all[i] = i + 20;  // places[0] is negative
    int* const from_last = all + root;
    MPI_Request request;
    if (is_root) {
        OK(MPI_Gather(&mine, 1, MPI_INT, all, 1, MPI_INT, root, world));
        OK(MPI_Gatherv(&mine, 1, MPI_INT, from_last, counts, places, MPI_INT, root, world));
        EXPECT_INT(all[0], 10);
        OK(MPI_Gather(MPI_IN_PLACE, kBadCount, NO_TYPE, all, 1, MPI_INT, root, world));
        OK(MPI_Gatherv(MPI_IN_PLACE, kBadCount, NO_TYPE, from_last, counts, places, MPI_INT, root, world));
        OK(MPI_Scatter(all, 1, MPI_INT, MPI_IN_PLACE, kBadCount, NO_TYPE, root, world));
        OK(MPI_Scatterv(from_last, counts, places, MPI_INT, MPI_IN_PLACE, kBadCount, NO_TYPE, root, world));
        OK(MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, root, world));
        EXPECT_INT(sum, 10 * size + size * (size - 1) / 2);
        OK(MPI_Ireduce(MPI_IN_PLACE, &mine, 1, MPI_INT, MPI_SUM, root, world, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        EXPECT_INT(mine, sum);
    } else {
        OK(MPI_Gather(&mine, 1, MPI_INT, nowhere, kBadCount, NO_TYPE, root, world));
        OK(MPI_Gatherv(&mine, 1, MPI_INT, nowhere, nowhere, nowhere, NO_TYPE, root, world));
        OK(MPI_Gather(&mine, 1, MPI_INT, MPI_IN_PLACE, kBadCount, NO_TYPE, root, world));
        OK(MPI_Gatherv(&mine, 1, MPI_INT, &mine, nowhere, nowhere, NO_TYPE, root, world));
        OK(MPI_Scatter(nowhere, kBadCount, NO_TYPE, &mine, 1, MPI_INT, root, world));
        EXPECT_INT(mine, 10 + rank);
        OK(MPI_Scatterv(nowhere, nowhere, nowhere, NO_TYPE, &mine, 1, MPI_INT, root, world));
        OK(MPI_Reduce(&mine, nowhere, 1, MPI_INT, MPI_SUM, root, world));
        OK(MPI_Ireduce(&mine, &mine, 1, MPI_INT, MPI_SUM, root, world, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    free(all), free(counts), free(places);
}

// In the root's group only the root's arguments are significant. In the other group the unused buffer, send or receive, is not significant.
static void between_groups(void) {
    MPI_Comm half, inter;
    int *all = integers(size), mine = 30 + rank, sum = 0;
    if (size < 2) return free(all);
    OK(MPI_Comm_split(world, rank % 2, 0, &half));
    OK(MPI_Intercomm_create(half, 0, world, 1 - rank % 2, 5, &inter));
    if (rank == 0) {
        OK(MPI_Bcast(&mine, 1, MPI_INT, MPI_ROOT, inter));
        OK(MPI_Gather(nowhere, kBadCount, NO_TYPE, all, 1, MPI_INT, MPI_ROOT, inter));
        EXPECT_INT(all[0], 30);
        OK(MPI_Scatter(all, 1, MPI_INT, nowhere, kBadCount, NO_TYPE, MPI_ROOT, inter));
        OK(MPI_Reduce(nowhere, &sum, 1, MPI_INT, MPI_SUM, MPI_ROOT, inter));
        EXPECT_INT(sum, 30 * (size / 2));
    } else if (rank % 2 == 0) {
        OK(MPI_Bcast(nowhere, kBadCount, NO_TYPE, MPI_PROC_NULL, inter));
        OK(MPI_Gather(nowhere, kBadCount, NO_TYPE, nowhere, kBadCount, NO_TYPE, MPI_PROC_NULL, inter));
        OK(MPI_Scatter(nowhere, kBadCount, NO_TYPE, nowhere, kBadCount, NO_TYPE, MPI_PROC_NULL, inter));
        OK(MPI_Reduce(nowhere, nowhere, kBadCount, NO_TYPE, MPI_SUM, MPI_PROC_NULL, inter));
    } else {
        OK(MPI_Bcast(&mine, 1, MPI_INT, 0, inter));
        EXPECT_INT(mine, 30);
        OK(MPI_Gather(&mine, 1, MPI_INT, nowhere, kBadCount, NO_TYPE, 0, inter));
        OK(MPI_Scatter(nowhere, kBadCount, NO_TYPE, &mine, 1, MPI_INT, 0, inter));
        OK(MPI_Reduce(&mine, nowhere, 1, MPI_INT, MPI_SUM, 0, inter));
    }
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
    free(all);
}

static void in_place(void) {
    int *all = integers(size), *counts = integers(size), *places = integers(size), *bytes = integers(size);
    MPI_Datatype* types = calloc((size_t)size, sizeof *types);
    for (int i = 0; i < size; i++) all[i] = counts[i] = 1, places[i] = i - last, bytes[i] = 4 * (i - last), types[i] = MPI_INT;
    int* const from_last = all + last;
    OK(MPI_Allgather(MPI_IN_PLACE, kBadCount, NO_TYPE, all, 1, MPI_INT, world));
    OK(MPI_Allgatherv(MPI_IN_PLACE, kBadCount, NO_TYPE, from_last, counts, places, MPI_INT, world));
    OK(MPI_Alltoall(MPI_IN_PLACE, kBadCount, NO_TYPE, all, 1, MPI_INT, world));
    OK(MPI_Alltoallv(MPI_IN_PLACE, NULL, nowhere, NO_TYPE, from_last, counts, places, MPI_INT, world));
    OK(MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, nowhere, from_last, counts, bytes, types, world));
    OK(MPI_Allreduce(MPI_IN_PLACE, all, size, MPI_INT, MPI_SUM, world));
    OK(MPI_Reduce_scatter(MPI_IN_PLACE, all, counts, MPI_INT, MPI_SUM, world));
    OK(MPI_Reduce_scatter_block(MPI_IN_PLACE, all, 1, MPI_INT, MPI_SUM, world));
    OK(MPI_Scan(MPI_IN_PLACE, all, 1, MPI_INT, MPI_SUM, world));
    OK(MPI_Exscan(MPI_IN_PLACE, all, 1, MPI_INT, MPI_SUM, world));
    free(all), free(counts), free(places), free(bytes), free(types);
}

static void without_data(void) {
    int *zeros = integers(size), *places = integers(size), mine = rank, before = -1;
    MPI_Request request;
    for (int i = 0; i < size; i++) places[i] = 1000 - i;
    OK(MPI_Bcast(NULL, 0, MPI_INT, 0, world));
    OK(MPI_Allgather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, world));
    OK(MPI_Allgatherv(NULL, 0, MPI_INT, NULL, zeros, places, MPI_INT, world));
    OK(MPI_Alltoall(NULL, 0, MPI_INT, NULL, 0, MPI_INT, world));
    OK(MPI_Alltoallv(NULL, zeros, places, MPI_INT, NULL, zeros, places, MPI_INT, world));
    OK(MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, world));
    OK(MPI_Reduce(NULL, NULL, 0, MPI_INT, MPI_SUM, 0, world));
    OK(MPI_Reduce_scatter(NULL, NULL, zeros, MPI_INT, MPI_SUM, world));
    // In an exclusive scan rank 0 receives nothing.
    OK(MPI_Exscan(&mine, rank ? &before : NULL, 1, MPI_INT, MPI_SUM, world));
    OK(MPI_Iexscan(&mine, rank ? (void*)&before : MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, world, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (rank) EXPECT_INT(before, rank * (rank - 1) / 2);
    free(zeros), free(places);
}

// Displacements relative to MPI_BOTTOM are absolute addresses.
static void from_bottom(void) {
#if MPI_AT_LEAST(4, 0)
    static MPI_Count counts[64];
    static MPI_Aint places[64];
    static int received[64];
    const int mine = 3 * rank;
    if (size > 64) return;
    for (int i = 0; i < size; i++) {
        MPI_Aint address;
        counts[i] = 1;
        OK(MPI_Get_address(&received[i], &address));
        places[i] = address / (MPI_Aint)sizeof(int);
    }
    OK(MPI_Allgatherv_c(&mine, 1, MPI_INT, MPI_BOTTOM, counts, places, MPI_INT, world));
    for (int i = 0; i < size; i++) EXPECT_INT(received[i], 3 * i);
#endif
}

static void windows(void) {
    MPI_Win win;
    int value = 3, result = 0, *memory;
    OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, world, &win));
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    OK(MPI_Put(NULL, 0, MPI_INT, 0, 77, 0, MPI_INT, win));
    OK(MPI_Get(NULL, 0, MPI_INT, last, -1, 0, MPI_INT, win));
    OK(MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 5, 1, MPI_INT, win));
    OK(MPI_Accumulate(&value, 1, MPI_INT, MPI_PROC_NULL, 5, 1, MPI_INT, MPI_SUM, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED | MPI_MODE_NOSTORE, win));
    OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
    OK(MPI_Win_start(MPI_GROUP_EMPTY, MPI_MODE_NOCHECK, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    OK(MPI_Win_free(&win));
    OK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, world, &memory, &win));
    *memory = 40 + rank;
    OK(MPI_Barrier(world));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, win));
    OK(MPI_Win_flush(MPI_PROC_NULL, win));
    OK(MPI_Win_unlock(MPI_PROC_NULL, win));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, last, 0, win));
    // With MPI_NO_OP the origin arguments are not significant.
    OK(MPI_Get_accumulate(NULL, kBadCount, NO_TYPE, &result, 1, MPI_INT, last, 0, 1, MPI_INT, MPI_NO_OP, win));
    OK(MPI_Win_flush(last, win));
    EXPECT_INT(result, 40 + last);
    OK(MPI_Fetch_and_op(NULL, &result, MPI_INT, last, 0, MPI_NO_OP, win));
    OK(MPI_Win_unlock(last, win));
    OK(MPI_Win_free(&win));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, world, &win));
    OK(MPI_Win_attach(win, NULL, 0));
    // A region of no bytes overlaps no other region.
    int numbers[4];
    OK(MPI_Win_attach(win, numbers, sizeof numbers));
    OK(MPI_Win_attach(win, numbers, 0));
    OK(MPI_Win_attach(win, numbers + 1, 0));
    for (int i = 0; i < 2; i++) OK(MPI_Win_detach(win, numbers));
    OK(MPI_Win_detach(win, numbers + 1));
    OK(MPI_Win_free(&win));
}

static void the_rest(void) {
    MPI_Info info;
    int flag, length = 0;
    void* back;
    char name[MPI_MAX_OBJECT_NAME];
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "key", ""));
#if MPI_AT_LEAST(4, 0)
    OK(MPI_Info_get_string(info, "key", &length, NULL, &flag));
    EXPECT_INT(length, 1);
    OK(MPI_Info_get_string(info, "no such key", &length, NULL, &flag));
    EXPECT_INT(flag, 0);
#endif
    OK(MPI_Info_free(&info));
    OK(MPI_Buffer_attach(NULL, 0));
    OK(MPI_Buffer_detach(&back, &length));
#if MPI_AT_LEAST(4, 1)
    OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, kBadCount));
    OK(MPI_Buffer_detach(&back, &length));
    CHECK(back == MPI_BUFFER_AUTOMATIC);
#endif
    OK(MPI_Type_get_name(MPI_DATATYPE_NULL, name, &length));
    OK(MPI_Win_get_name(MPI_WIN_NULL, name, &length));
    OK(MPI_Alloc_mem(0, MPI_INFO_NULL, &back));
    OK(MPI_Free_mem(back));
    OK(MPI_Reduce_local(NULL, NULL, 0, MPI_INT, MPI_SUM));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(world, &rank));
    OK(MPI_Comm_size(world, &size));
    last = size - 1;
    static void (*const chapters[])(void) = {nothing_between_two, partitions,  datatypes, packing,        groups,
                                             communicators,       topologies,  rooted,    between_groups, in_place,
                                             without_data,        from_bottom, windows,   the_rest};
    for (size_t i = 0; i < sizeof chapters / sizeof *chapters; i++) chapters[i]();
    OK(MPI_Finalize());
    return 0;
}
