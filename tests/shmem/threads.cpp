// Threads of all PEs add to the same words, through their own contexts and the default one; other threads wait for the threads' puts.
#include <thread>
#include <vector>

extern "C" {
#include "check.h"
}

int main() {
    int provided = 0;
    EXPECT_INT(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided), 0);
    EXPECT_INT(provided, SHMEM_THREAD_MULTIPLE);
    const int me = shmem_my_pe(), n = shmem_n_pes();
    constexpr int kThreads = 4, kRounds = 200;
    auto* sums = static_cast<long*>(shmem_calloc(kThreads + 1, sizeof(long)));
    auto* flags = static_cast<long*>(shmem_calloc(kThreads, sizeof(long)));
    static long variable = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; t++)
        threads.emplace_back([=] {
            shmem_ctx_t context;
            EXPECT_INT(shmem_ctx_create(0, &context), 0);
            for (int i = 0; i < kRounds; i++) {
                const int pe = (me + i) % n;
                shmem_ctx_long_atomic_add(context, &sums[t], 1, pe);
                shmem_long_atomic_inc(&sums[kThreads], pe);
                if (i % 20 == 0) shmem_long_atomic_fetch_add(&variable, 1, pe);
            }
            shmem_ctx_quiet(context);
            shmem_long_p(&flags[t], me + 1, (me + 1) % n);
            shmem_quiet();
            shmem_long_wait_until(&flags[t], SHMEM_CMP_EQ, (me + n - 1) % n + 1);
            shmem_ctx_destroy(context);
        });
    for (std::thread& thread : threads) thread.join();
    shmem_barrier_all();
    long total = 0, mine[kThreads + 1];
    for (int pe = 0; pe < n; pe++) {
        shmem_long_get(mine, sums, kThreads + 1, pe);
        for (int t = 0; t < kThreads; t++) total += mine[t];
    }
    EXPECT_INT(total, long{kThreads} * kRounds * n);
    long all = 0;
    for (int pe = 0; pe < n; pe++) all += shmem_long_g(&variable, pe);
    EXPECT_INT(all, long{kThreads} * (kRounds / 20) * n);
    shmem_barrier_all();
    shmem_finalize();
}
