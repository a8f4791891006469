// A PE of a spawned job dies: collectives of a team that includes it must return an error on the parents, whose own world still works.
#include <mpi.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
//
#include <shmemx.h>

#include "check.h"

static shmem_team_t both_of(MPI_Comm other, int is_child) {
    MPI_Comm both;
    shmem_team_t team;
    MPI_Intercomm_merge(other, is_child, &both);
    EXPECT_INT(shmemx_team_from_comm(both, &team), 0);
    MPI_Comm_free(&both);
    return team;
}

static void child(const char* how, MPI_Comm parent) {
    long* word = shmem_calloc(4, sizeof *word);
    const shmem_team_t team = both_of(parent, 1);
    shmem_team_sync(team);
    if (shmem_my_pe() == 1) {
        // Waits until all have left the barrier: a death during the barrier could make it fail for other PEs.
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
        if (strcmp(how, "waited for") == 0) usleep(50000);
        raise(SIGKILL);
    }
    shmem_long_wait_until(word, SHMEM_CMP_NE, 0);  // no PE sets it: waits until its job ends
}

static void parent_of(const char* program, const char* how, long* word) {
    const int me = shmem_my_pe(), n = shmem_n_pes();
    char* arguments[] = {(char*)how, NULL};
    MPI_Comm children;
    MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Comm_set_errhandler(children, MPI_ERRORS_RETURN);
    const shmem_team_t team = both_of(children, 0);
    EXPECT_INT(shmem_team_n_pes(team), n + 2);
    EXPECT_INT(shmem_team_sync(team), 0);
    shmem_barrier_all();
    if (me == 0) MPI_Send(NULL, 0, MPI_INT, 1, 0, children);
    word[1] = 1;
    CHECK(shmem_long_sum_reduce(team, &word[2], &word[1], 1) != 0, "%s: a reduction with a dead PE succeeded", how);
    CHECK(shmem_team_sync(team) != 0, "%s: a barrier with a dead PE succeeded", how);
    // Operations without the dead PE still work.
    shmem_barrier_all();
    shmem_long_p(&word[0], 100 + me, (me + 1) % n);
    shmem_barrier_all();
    EXPECT_INT(word[0], 100 + (me + n - 1) % n);
    EXPECT_INT(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &word[2], &word[1], 1), 0);
    EXPECT_INT(word[2], n);
    shmem_team_destroy(team);
    MPI_Comm_free(&children);
}

int main(int argc, char** argv) {
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    shmem_init();
    if (parent != MPI_COMM_NULL) {
        child(argv[1], parent);
    } else {
        long* word = shmem_calloc(4, sizeof *word);
        parent_of(argv[0], "at once", word);
        parent_of(argv[0], "waited for", word);
        shmem_free(word);
    }
    shmem_finalize();
    MPI_Finalize();
    return 0;
}
