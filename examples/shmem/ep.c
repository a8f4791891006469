// Embarrassingly parallel: pairs of Gaussian deviates by Marsaglia's polar method, counted by the square ring that they fall into. The PEs
// share the batches of random numbers, whose seeds every PE can compute, and communicate only for the sums at the end. PE 0 then runs all
// batches serially and compares. oshrun -n 4 ep [log2 of the pairs]
#include <math.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { RINGS = 10, LOG_BATCH = 10 };

struct result {
    long rings[RINGS];
    double sums[2];
};

static double next_uniform(unsigned long* state) {
    unsigned long z = (*state += 0x9e3779b97f4a7c15ul);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ul;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebul;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

static void play_batch(long batch, struct result* result) {
    unsigned long state = ((unsigned long)batch << 20) + 11;
    for (int i = 0; i < 1 << LOG_BATCH; i++) {
        const double x = next_uniform(&state), y = next_uniform(&state), t = x * x + y * y;
        if (t > 1 || t == 0) continue;
        const double scale = sqrt(-2 * log(t) / t), gx = x * scale, gy = y * scale;
        const int ring = (int)fmax(fabs(gx), fabs(gy));
        if (ring < RINGS) result->rings[ring]++;
        result->sums[0] += gx;
        result->sums[1] += gy;
    }
}

int main(int argc, char** argv) {
    shmem_init();
    const int me = shmem_my_pe(), pes = shmem_n_pes();
    const long batches = 1l << ((argc > 1 ? atoi(argv[1]) : 20) - LOG_BATCH);
    struct result* mine = shmem_calloc(1, sizeof *mine);
    struct result* all = shmem_calloc(1, sizeof *all);
    for (long batch = me; batch < batches; batch += pes) play_batch(batch, mine);
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, all->rings, mine->rings, RINGS);
    shmem_double_sum_reduce(SHMEM_TEAM_WORLD, all->sums, mine->sums, 2);
    int wrong = 0;
    if (me == 0) {
        struct result alone = {{0}, {0}};
        long pairs = 0;
        for (long batch = 0; batch < batches; batch++) play_batch(batch, &alone);
        for (int i = 0; i < RINGS; i++) wrong += alone.rings[i] != all->rings[i], pairs += all->rings[i];
        for (int i = 0; i < 2; i++)
            wrong += !(fabs(alone.sums[i] - all->sums[i]) < 1e-9 * (double)pairs);  // the order of the sums differs
        printf("%ld batches on %d PEs: %ld pairs, sums %f and %f, %s\n", batches, pes, pairs, all->sums[0], all->sums[1],
               wrong ? "WRONG" : "as in the serial run");
    }
    shmem_finalize();
    return wrong != 0;
}
