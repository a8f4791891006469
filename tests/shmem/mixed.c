// MPI and OpenSHMEM in one program, initialized and finalized in any order. TEST_ORDER has two letters (m or s): which is initialized
// first, and which is finalized first. Messages and puts go between the same processes; teams are converted to communicators and back.
#include <mpi.h>
//
#include <shmemx.h>

#include "check.h"

static int me, n;

static void test_both(void) {
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT_INT(rank, me);
    EXPECT_INT(size, n);
    long* word = shmem_calloc(2, sizeof *word);
    long value = me * 10, sum = 0, got = -1;
    shmem_long_p(word, value, (me + 1) % n);
    MPI_Sendrecv(&value, 1, MPI_LONG, (me + 1) % n, 7, &got, 1, MPI_LONG, (me + n - 1) % n, 7, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    EXPECT_INT(got, (me + n - 1) % n * 10);
    MPI_Request request;
    MPI_Iallreduce(&value, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
    shmem_barrier_all();  // the barrier must make progress on the allreduce too
    EXPECT_INT(*word, (me + n - 1) % n * 10);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_INT(sum, 10 * n * (n - 1) / 2);
    // A wait in MPI must make progress on the other PEs' OpenSHMEM operations, and vice versa.
    if (n == 1) return;
    if (me == 0) {
        shmem_long_wait_until(&word[1], SHMEM_CMP_EQ, 77);
        for (int pe = 1; pe < n; pe++) MPI_Send(&value, 1, MPI_LONG, pe, 8, MPI_COMM_WORLD);
    } else {
        if (me == n - 1) shmem_long_p(&word[1], 77, 0);
        MPI_Recv(&got, 1, MPI_LONG, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    shmem_barrier_all();
    shmem_free(word);
}

static void test_teams(void) {
    MPI_Comm half, back;
    shmem_team_t team, everyone;
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &half);  // backwards
    EXPECT_INT(shmemx_team_from_comm(half, &team), 0);
    int rank, size;
    MPI_Comm_rank(half, &rank);
    MPI_Comm_size(half, &size);
    MPI_Comm_free(&half);
    EXPECT_INT(shmem_team_my_pe(team), rank);
    EXPECT_INT(shmem_team_n_pes(team), size);
    EXPECT_INT(shmem_team_translate_pe(team, rank, SHMEM_TEAM_WORLD), me);
    long* word = shmem_calloc(2, sizeof *word);
    shmem_ctx_t context;
    EXPECT_INT(shmem_team_create_ctx(team, 0, &context), 0);
    shmem_ctx_long_p(context, word, me + 5, (rank + 1) % size);
    shmem_ctx_quiet(context);
    shmem_team_sync(team);
    EXPECT_INT(*word, shmem_team_translate_pe(team, (rank + size - 1) % size, SHMEM_TEAM_WORLD) + 5);
    EXPECT_INT(shmemx_comm_from_team(team, &back), 0);
    int again;
    MPI_Comm_rank(back, &again);
    EXPECT_INT(again, rank);
    MPI_Barrier(back);
    MPI_Comm_free(&back);
    shmem_team_destroy(team);
    EXPECT_INT(shmemx_team_from_comm(MPI_COMM_WORLD, &everyone), 0);
    EXPECT_INT(shmem_team_n_pes(everyone), n);
    shmem_team_destroy(everyone);
    CHECK(shmemx_team_from_comm(MPI_COMM_NULL, &everyone) != 0, "a team of no communicator");
    shmem_barrier_all();
    shmem_free(word);
}

int main(int argc, char** argv) {
    const char* order = getenv("TEST_ORDER") ? getenv("TEST_ORDER") : "mm";
    if (order[0] == 'm') MPI_Init(&argc, &argv);
    shmem_init();
    if (order[0] != 'm') MPI_Init(&argc, &argv);
    me = shmem_my_pe();
    n = shmem_n_pes();
    test_both();
    test_teams();
    if (order[1] == 'm') {
        MPI_Finalize();
        long* word = shmem_calloc(1, sizeof *word);
        shmem_long_p(word, me, (me + 1) % n);
        shmem_barrier_all();
        EXPECT_INT(*word, (me + n - 1) % n);
    }
    shmem_finalize();
    if (order[1] != 'm') {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Finalize();
    }
    return 0;
}
