// Send and receive buffers of a collective may lie in one array if they share no byte. Displacements are disjoint, types interleave over
// one base, or there is nothing to move. Memory that is both sent and received must be refused on all members alike.
#include "check.h"

static int rank, size;
static MPI_Datatype even, odd;  ///< the even and the odd ints of two blocks of `size` ints
static int *array, *counts, *near, *far, *bytes, *none;
static MPI_Datatype* types;

static void fill(int n) {
    for (int i = 0; i < n; i++) array[i] = 1000 * rank + i;
}

static int where_from(int from, int i) { return 1000 * from + i; }

static void displaced(void) {
    const MPI_Comm world = MPI_COMM_WORLD;
    fill(2 * size);
    OK(MPI_Allgatherv(array, 1, MPI_INT, array, counts, far, MPI_INT, world));
    for (int i = 0; i < size; i++) EXPECT_INT(array[size + i], where_from(i, 0));
    fill(2 * size);
    OK(MPI_Gatherv(array, 1, MPI_INT, array, counts, far, MPI_INT, 0, world));
    for (int i = 0; i < size && rank == 0; i++) EXPECT_INT(array[size + i], where_from(i, 0));
    fill(2 * size);
    OK(MPI_Scatterv(array, counts, far, MPI_INT, array, 1, MPI_INT, 0, world));
    EXPECT_INT(array[0], where_from(0, size + rank));
    fill(2 * size);
    OK(MPI_Alltoallv(array, counts, near, MPI_INT, array, counts, far, MPI_INT, world));
    for (int i = 0; i < size; i++) EXPECT_INT(array[size + i], where_from(i, rank));
    fill(2 * size);
    for (int i = 0; i < size; i++) bytes[i] = far[i] * (int)sizeof(int), none[i] = near[i] * (int)sizeof(int);
    OK(MPI_Alltoallw(array, counts, none, types, array, counts, bytes, types, world));
    for (int i = 0; i < size; i++) EXPECT_INT(array[size + i], where_from(i, rank));
    fill(2 * size);
}

static void interleaved(void) {
    const MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request request;
    fill(4 * size);
    OK(MPI_Alltoall(array, 1, even, array, 1, odd, world));
    for (int i = 0; i < size; i++) EXPECT_INT(array[4 * i + 1], where_from(i, 4 * rank));
    fill(4 * size);
    OK(MPI_Ialltoall(array, 1, even, array, 1, odd, world, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < size; i++) EXPECT_INT(array[4 * i + 1], where_from(i, 4 * rank));
    fill(4 * size);
    OK(MPI_Allgather(array, 1, even, array, 1, odd, world));
    for (int i = 0; i < size; i++) EXPECT_INT(array[4 * i + 3], where_from(i, 2));
    fill(4 * size);
    OK(MPI_Gather(array, 1, even, array, 1, odd, 0, world));
    for (int i = 0; i < size && rank == 0; i++) EXPECT_INT(array[4 * i + 3], where_from(i, 2));
    fill(4 * size);
    OK(MPI_Scatter(array, 1, even, array, 1, odd, 0, world));
    EXPECT_INT(array[1], where_from(0, 4 * rank));
}

static void neighbours(void) {
    MPI_Comm ring;
    const int periodic = 1, left = (rank + size - 1) % size, right = (rank + 1) % size;
    int in_counts[2] = {1, 1}, first[2] = {0, 1}, second[2] = {2, 3};
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring));
    fill(8);
    OK(MPI_Neighbor_alltoallv(array, in_counts, first, MPI_INT, array, in_counts, second, MPI_INT, ring));
    EXPECT_INT(array[2], where_from(left, 1));
    EXPECT_INT(array[3], where_from(right, 0));
    fill(8);
    OK(MPI_Neighbor_allgather(array, 1, even, array, 1, odd, ring));
    EXPECT_INT(array[1], where_from(left, 0));
    EXPECT_INT(array[7], where_from(right, 2));
    fill(8);
    OK(MPI_Neighbor_alltoall(array, 1, even, array, 1, odd, ring));
    EXPECT_INT(array[1], where_from(left, 4));
    EXPECT_INT(array[7], where_from(right, 2));
    EXPECT_ERROR(MPI_Neighbor_alltoall(array, 1, MPI_INT, array, 1, MPI_INT, ring), MPI_ERR_BUFFER);
    EXPECT_ERROR(MPI_Neighbor_allgather(array, 1, MPI_INT, array, 1, MPI_INT, ring), MPI_ERR_BUFFER);
    OK(MPI_Comm_free(&ring));
}

static void nothing(void) {
    const MPI_Comm world = MPI_COMM_WORLD;
    MPI_Datatype empty;
    OK(MPI_Type_contiguous(0, MPI_INT, &empty));
    OK(MPI_Type_commit(&empty));
    for (int i = 0; i < size; i++) none[i] = 0;
    OK(MPI_Allgather(array, 3, empty, array, 3, empty, world));
    OK(MPI_Alltoall(array, 3, empty, array, 3, empty, world));
    OK(MPI_Gather(array, 0, MPI_INT, array, 0, MPI_INT, 0, world));
    OK(MPI_Alltoallv(array, none, near, MPI_INT, array, none, near, MPI_INT, world));
    OK(MPI_Allreduce(array, array, 0, MPI_INT, MPI_SUM, world));
    OK(MPI_Reduce_local(array, array, 0, MPI_INT, MPI_SUM));
    OK(MPI_Type_free(&empty));
}

// All members return the error, even if each sends from a different place in the array.
static void refused(void) {
    const MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request request;
    fill(4 * size);
    EXPECT_ERROR(MPI_Allgather(&array[rank], 1, MPI_INT, array, 1, MPI_INT, world), MPI_ERR_BUFFER);
    EXPECT_ERROR(MPI_Allgatherv(&array[rank], 1, MPI_INT, array, counts, near, MPI_INT, world), MPI_ERR_BUFFER);
    EXPECT_ERROR(MPI_Allgather(array, 1, even, array, 1, even, world), MPI_ERR_BUFFER);
    EXPECT_ERROR(MPI_Alltoall(array, 1, MPI_INT, array, 1, MPI_INT, world), MPI_ERR_BUFFER);
    EXPECT_ERROR(MPI_Alltoallv(array, counts, near, MPI_INT, array, counts, near, MPI_INT, world), MPI_ERR_BUFFER);
    EXPECT_ERROR(MPI_Ialltoallv(array, counts, near, MPI_INT, array, counts, near, MPI_INT, world, &request), MPI_ERR_BUFFER);
    EXPECT_ERROR(MPI_Alltoallw(array, counts, near, types, array, counts, near, types, world), MPI_ERR_BUFFER);
    EXPECT_ERROR(MPI_Allreduce(array, array + 1, 2, MPI_INT, MPI_SUM, world), MPI_ERR_BUFFER);
    EXPECT_ERROR(MPI_Scan(array, array, 1, MPI_INT, MPI_SUM, world), MPI_ERR_BUFFER);
    EXPECT_ERROR(MPI_Reduce_scatter_block(array, array, 1, MPI_INT, MPI_SUM, world), MPI_ERR_BUFFER);
    EXPECT_ERROR(MPI_Reduce_local(array, array, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
    OK(MPI_Allreduce(array, array + 2, 2, MPI_INT, MPI_SUM, world));
}

static MPI_Datatype every_second(int from) {
    const int lengths[2] = {1, 1}, at[2] = {from, from + 2};
    MPI_Datatype indexed, resized;
    OK(MPI_Type_indexed(2, lengths, at, MPI_INT, &indexed));
    OK(MPI_Type_create_resized(indexed, 0, 4 * sizeof(int), &resized));
    OK(MPI_Type_commit(&resized));
    OK(MPI_Type_free(&indexed));
    return resized;
}

static int* integers(int n) {
    int* made = malloc((size_t)n * sizeof(int));
    CHECK(made);
    return made;
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    array = integers(4 * size + 8), counts = integers(size), near = integers(size), far = integers(size);
    bytes = integers(size), none = integers(size), types = malloc((size_t)size * sizeof(MPI_Datatype));
    for (int i = 0; i < size; i++) counts[i] = 1, near[i] = i, far[i] = size + i, types[i] = MPI_INT;
    even = every_second(0), odd = every_second(1);
    displaced();
    interleaved();
    neighbours();
    nothing();
    refused();
    OK(MPI_Type_free(&even));
    OK(MPI_Type_free(&odd));
    free(array), free(counts), free(near), free(far), free(bytes), free(none), free(types);
    OK(MPI_Finalize());
    return 0;
}
