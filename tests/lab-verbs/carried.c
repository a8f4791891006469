/* carried [COUNTER=LEAST]...: ranks 0 and 1 exchange and check short and long messages until every counter has reached its least value,
 * because it takes time until a port or a connection is used. After kMostRounds this is an error. Rank 0 prints its counters whose names
 * begin with messages_. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kShort = 2000, kLong = 20, kBytes = 1 << 20, kMostRounds = 200 };

enum { kMost = 1000 };
static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[kMost];
static int known;

static int is_counter(int index, char (*name)[100]) {
    int length = sizeof *name, verbosity, class, bind, readonly, continuous, atomic;
    MPI_Datatype type;
    MPI_T_pvar_get_info(index, *name, &length, &verbosity, &class, &type, NULL, NULL, NULL, &bind, &readonly, &continuous,
                        &atomic);
    return class == MPI_T_PVAR_CLASS_COUNTER;
}

static void start_counters(void) {
    char name[100];
    int count;
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_get_num(&known);
    if (known > kMost) known = kMost;
    for (int i = 0; i < known; ++i) {
        if (!is_counter(i, &name)) continue;
        MPI_T_pvar_handle_alloc(session, i, NULL, &handles[i], &count);
        MPI_T_pvar_start(session, handles[i]);
    }
}

/* Returns whether every counter has reached its least value. */
static int all_fulfilled(int argc, char** argv) {
    int fulfilled = 0;
    for (int i = 0; i < known; ++i) {
        char name[100];
        unsigned long long value = 0;
        if (!is_counter(i, &name)) continue;
        MPI_T_pvar_read(session, handles[i], &value);
        for (int j = 1; j < argc; ++j) {
            const size_t size = strcspn(argv[j], "=");
            if (strncmp(name, argv[j], size) != 0 || name[size] != 0) continue;
            fulfilled += value >= strtoull(argv[j] + size + 1, NULL, 10);
        }
    }
    return fulfilled == argc - 1;
}

static void print_counters(void) {
    for (int i = 0; i < known; ++i) {
        char name[100];
        unsigned long long value = 0;
        if (!is_counter(i, &name) || strncmp(name, "messages_", 9) != 0) continue;
        MPI_T_pvar_read(session, handles[i], &value);
        printf("%s %llu\n", name, value);
    }
}

static int exchange(int rank, char* data, int bytes, int round) {
    int wrong = 0;
    for (int turn = 0; turn < 2; ++turn) {
        if (rank == turn) {
            memset(data, round + turn, (size_t)bytes);
            MPI_Send(data, bytes, MPI_BYTE, 1 - rank, 7, MPI_COMM_WORLD);
        } else {
            MPI_Recv(data, bytes, MPI_BYTE, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < bytes; ++i) wrong += data[i] != (char)(round + turn);
        }
    }
    return wrong;
}

int main(int argc, char** argv) {
    int provided, rank, wrong = 0;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    start_counters();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char* data = malloc(kBytes);
    int done = rank > 1;
    for (int round = 0; !done && !wrong && round < kMostRounds; ++round) {
        for (int i = 0; i < kShort; ++i) wrong += exchange(rank, data, 1 + i % 3000, i);
        for (int i = 0; i < kLong; ++i) wrong += exchange(rank, data, kBytes, i);
        if (rank == 0) {
            done = all_fulfilled(argc, argv);
            MPI_Send(&done, 1, MPI_INT, 1, 8, MPI_COMM_WORLD);
        } else {
            MPI_Recv(&done, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    if (wrong) printf("rank %d: %d bytes are wrong\n", rank, wrong);
    if (rank == 0) print_counters();
    wrong += !done;
    free(data);
    MPI_T_pvar_session_free(&session);
    MPI_Finalize();
    MPI_T_finalize();
    return wrong != 0;
}
