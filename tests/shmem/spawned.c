// Spawned jobs: the children have their own OpenSHMEM world and a heap of another size. A team of both jobs, made from the merged
// communicator, accesses the heaps of all its members.
#include <mpi.h>
//
#include <shmemx.h>

#include "check.h"

int main(int argc, char** argv) {
    MPI_Comm parent, children, both;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    const int is_child = parent != MPI_COMM_NULL;
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    long* word = shmem_calloc(4, sizeof *word);
    if (is_child) EXPECT_INT(n, 2);
    if (is_child)
        children = parent;
    else
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    // The children's puts stay within their own world.
    shmem_long_p(&word[1], me + 100 * is_child, (me + 1) % n);
    shmem_barrier_all();
    EXPECT_INT(word[1], (me + n - 1) % n + 100 * is_child);
    MPI_Intercomm_merge(children, is_child, &both);
    shmem_team_t team;
    EXPECT_INT(shmemx_team_from_comm(both, &team), 0);
    const int mine = shmem_team_my_pe(team), size = shmem_team_n_pes(team);
    EXPECT_INT(shmem_team_translate_pe(team, mine, SHMEM_TEAM_WORLD), me);
    shmem_ctx_t context;
    EXPECT_INT(shmem_team_create_ctx(team, 0, &context), 0);
    shmem_team_sync(team);
    shmem_ctx_long_p(context, word, 1000 + mine, (mine + 1) % size);
    shmem_ctx_long_atomic_add(context, &word[2], mine + 1, 0);
    shmem_ctx_quiet(context);
    shmem_team_sync(team);
    EXPECT_INT(word[0], 1000 + (mine + size - 1) % size);
    EXPECT_INT(shmem_ctx_long_g(context, &word[2], 0), size * (size + 1) / 2);
    EXPECT_INT(shmem_ctx_long_g(context, word, (mine + 2) % size), 1000 + (mine + 1) % size);
    word[3] = mine;
    EXPECT_INT(shmem_long_sum_reduce(team, &word[3], &word[3], 1), 0);
    EXPECT_INT(word[3], size * (size - 1) / 2);
    shmem_team_sync(team);
    shmem_ctx_destroy(context);
    shmem_team_destroy(team);
    MPI_Comm_free(&both);
    shmem_finalize();
    MPI_Comm_disconnect(&children);
    MPI_Finalize();
    return 0;
}
