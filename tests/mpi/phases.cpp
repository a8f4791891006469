// Phases of communication with changing partners, marked or not, and marked at different times in different processes. Connections open and
// close meanwhile; every message must arrive, in order and intact.
#include <unistd.h>

#include <vector>

#include "check.h"
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

namespace {

int rank, size;

int begin(MPI_Comm comm, const char* name) {
#ifdef HAVE_MPIX_PHASE_BEGIN
    return MPIX_Phase_begin(comm, name);
#else
    return comm == MPI_COMM_NULL || !name ? MPI_ERR_OTHER : MPI_Pcontrol(3);
#endif
}

void check_arguments() {
#ifdef HAVE_MPIX_PHASE_BEGIN
    char name[MPI_MAX_OBJECT_NAME + 1];
    memset(name, 'n', sizeof name);
    name[MPI_MAX_OBJECT_NAME] = '\0';
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EXPECT_ERROR(MPIX_Phase_begin(MPI_COMM_NULL, "phase"), MPI_ERR_COMM);
    EXPECT_ERROR(MPIX_Phase_begin(MPI_COMM_WORLD, nullptr), MPI_ERR_ARG);
    EXPECT_ERROR(MPIX_Phase_begin(MPI_COMM_WORLD, ""), MPI_ERR_ARG);
    EXPECT_ERROR(MPIX_Phase_begin(MPI_COMM_WORLD, name), MPI_ERR_ARG);
    name[MPI_MAX_OBJECT_NAME - 1] = '\0';
    OK(PMPIX_Phase_begin(MPI_COMM_WORLD, name));
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
#endif
    for (const int level : {0, 3, 1, 2, 4, -1}) OK(MPI_Pcontrol(level, "and more", level));
}

/// Returns how many messages `from` sends to `to` in an occurrence of a phase. The result is equal on all ranks.
int messages(uint64_t seed, int phase, int occurrence, int from, int to) {
    if (from == to) return 0;
    // A phase has its usual partners, and occasionally others.
    uint64_t partners = seed + static_cast<uint64_t>(phase) * 1000003 + static_cast<uint64_t>(from * size + to) * 7919;
    uint64_t once = partners ^ (static_cast<uint64_t>(occurrence) << 40);
    const bool usual = random_below(&partners, size) < 2, now = random_below(&once, 10) != 0;
    return usual == now ? 1 + random_below(&once, 40) : 0;
}

uint32_t length_of(uint64_t key) {
    static const uint32_t kMost[] = {8, 8, 64, 1000, 1100, 20'000, 100'000};
    uint64_t state = key;
    const int most = random_below(&state, 40);
    return static_cast<uint32_t>(random_below(&state, static_cast<int>(kMost[most < 7 ? most : 1]) + 1));
}

uint64_t key_of(uint64_t seed, int phase, int occurrence, int from, int to, int i) {
    uint64_t key = seed;
    for (const int part : {phase, occurrence, from, to, i}) {
        key ^= static_cast<uint64_t>(part) + 1;
        next_random(&key);
    }
    return key;
}

void run_occurrence(uint64_t seed, int phase, int occurrence) {
    std::vector<MPI_Request> requests;
    std::vector<std::vector<unsigned char>> out, in;
    std::vector<uint64_t> in_keys;
    for (int other = 0; other < size; ++other) {
        for (int i = 0; i < messages(seed, phase, occurrence, other, rank); ++i) {
            in_keys.push_back(key_of(seed, phase, occurrence, other, rank, i));
            in.emplace_back(length_of(in_keys.back()) + 1);
            MPI_Irecv(in.back().data(), static_cast<int>(in.back().size()), MPI_BYTE, other, phase, MPI_COMM_WORLD,
                      &requests.emplace_back());
        }
    }
    for (int other = 0; other < size; ++other) {
        for (int i = 0; i < messages(seed, phase, occurrence, rank, other); ++i) {
            const uint64_t key = key_of(seed, phase, occurrence, rank, other, i);
            out.emplace_back(length_of(key) + 1);
            fill_bytes(out.back().data(), out.back().size(), key);
            MPI_Isend(out.back().data(), static_cast<int>(out.back().size()), MPI_BYTE, other, phase, MPI_COMM_WORLD,
                      &requests.emplace_back());
        }
    }
    std::vector<MPI_Status> statuses(requests.size());
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), statuses.data());
    for (size_t i = 0; i < in.size(); ++i) {
        int count = 0;
        MPI_Get_count(&statuses[i], MPI_BYTE, &count);
        EXPECT_INT(count, in[i].size());
        CHECK(first_wrong_byte(in[i].data(), in[i].size(), in_keys[i]) < 0, "phase %d, occurrence %d, message %zu", phase,
              occurrence, i);
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check_arguments();
    const uint64_t seed = start_seed(11);
    uint64_t all = seed, mine = seed + 77 * static_cast<uint64_t>(rank + 1);
    int occurrences[5] = {};
    for (int step = 0; step < 60; ++step) {
        // Four times of five the phases follow their usual order.
        const int phase = random_below(&all, 5) != 0 ? step % 5 : random_below(&all, 5);
        const char name[] = {'p', static_cast<char>('0' + phase), '\0'};
        OK(phase == 4 ? MPI_Pcontrol(7) : begin(MPI_COMM_WORLD, name));
        if (random_below(&mine, 8) == 0) usleep(static_cast<useconds_t>(random_below(&mine, 3000)));
        run_occurrence(seed, phase, occurrences[phase]++);
        if (random_below(&all, 4) == 0) MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
