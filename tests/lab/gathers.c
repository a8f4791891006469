/* Long allgathers and allreduces, whose parts hosts may multicast in turns; every result is checked. Plain MPI.
 *
 *   gathers joined COUNT BYTES   allgathers of BYTES bytes from each process: first until every host's leader has multicast its part in one
 *                                (counter group_turns), then COUNT
 *   gathers plain COUNT BYTES    the same without waiting for turns: two allgathers, then COUNT
 *   gathers forms ROUNDS         allgathers and allreduces of all forms: blocking, several at a time, persistent, in place, of uneven and
 *                                empty blocks, of types with gaps, on the whole communicator and on a part of it
 *   gathers forms ROUNDS joined  the same, after all leaders have taken turns
 *   gathers until-death BYTES    allgathers until one fails, as after a death: exit code 0 if one failed
 *
 * Rank 0 prints one line of JSON: the mean time of the last COUNT calls in microseconds, and the sums of some counters. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void fail(const char* what, long which) {
    fprintf(stderr, "gathers: rank %d: %s %ld is wrong\n", rank, what, which);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

static int word_of(long number, int from, long i) { return (int)(number * 7919 + from * 104729 + i * 31); }

enum { kTurns, kSent, kRepeats, kSingles, kCounters };
static const char* const kNames[kCounters] = {"group_turns", "datagrams_group_sent", "group_repeats", "group_singles"};

/* Returns the sum of a counter over all processes; 0 if the library does not have it. */
static unsigned long long counted(int which) {
    static MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
    static MPI_T_pvar_handle handles[kCounters];
    static int has_handle[kCounters];
    int index, count = 0;
    unsigned long long own = 0, all = 0;
    if (session == MPI_T_PVAR_SESSION_NULL) MPI_T_pvar_session_create(&session);
    if (!has_handle[which] && MPI_T_pvar_get_index(kNames[which], MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS) {
        MPI_T_pvar_handle_alloc(session, index, NULL, &handles[which], &count);
        MPI_T_pvar_start(session, handles[which]);
        has_handle[which] = 1;
    }
    if (has_handle[which]) MPI_T_pvar_read(session, handles[which], &own);
    MPI_Allreduce(&own, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* Rank 0 completes a line of JSON with the counters. */
static void print_counters(void) {
    for (int i = 0; i < kCounters; ++i) {
        const unsigned long long all = counted(i);
        if (rank == 0) printf(", \"%s\": %llu", kNames[i], all);
    }
    if (rank == 0) printf("}\n");
}

static void fill(int* part, long words, long number) {
    for (long i = 0; i < words; ++i) part[i] = word_of(number, rank, i);
}

static void check(const int* part, int from, long words, long number, const char* what) {
    for (long i = 0; i < words; ++i)
        if (part[i] != word_of(number, from, i)) fail(what, number);
}

/* An allgather; checks the first and the last words of each part, or all words. */
static void gather(int* all, long words, long number, int whole) {
    memset(all, 0x55, (size_t)(words * size) * sizeof(int));
    fill(all + rank * words, words, number);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, all, (int)words, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < size; ++from) {
        const int* const part = all + from * words;
        if (whole) check(part, from, words, number, "allgather");
        if (part[0] != word_of(number, from, 0) || part[words - 1] != word_of(number, from, words - 1))
            fail("allgather", number);
    }
}

/* Returns the number of hosts. */
static int hosts_of_all(void) {
    int hosts = 0, node;
    MPI_Comm host;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &node);
    node = node == 0;
    MPI_Allreduce(&node, &hosts, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_free(&host);
    return hosts;
}

/* Makes allgathers until each host's leader has multicast its part in one. The parts are short, and short broadcasts come first: how many calls
 * use messages before the group is ready differs from run to run, and must not show in a test's count of bytes. */
static void until_turns(int* all) {
    const long words = 10000;
    const unsigned hosts = (unsigned)hosts_of_all();
    for (int i = 0; i < 300; ++i) MPI_Bcast(all, 1, MPI_INT, 0, MPI_COMM_WORLD), MPI_Barrier(MPI_COMM_WORLD);
    const double limit = MPI_Wtime() + 200;
    for (long number = 0; counted(kTurns) < hosts; ++number) {
        gather(all, words, number, 1);
        if (MPI_Wtime() > limit) fail("no turns after allgather", number);
    }
}

static void gathers(long count, long bytes, int joins) {
    const long words = bytes / (long)sizeof(int);
    int* const all = malloc((size_t)((words > 10000 ? words : 10000) * size) * sizeof(int));
    long number = 100;
    if (joins) until_turns(all);
    for (; number < 102; ++number) gather(all, words, number, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    double mine = 0, slowest;
    for (long i = 0; i < count; ++i) {
        fill(all + rank * words, words, ++number);
        const double began = MPI_Wtime();
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, all, (int)words, MPI_INT, MPI_COMM_WORLD);
        mine += MPI_Wtime() - began;
        for (int from = 0; from < size; ++from) check(all + from * words, from, words, number, "allgather");
    }
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"operation\": \"allgather\", \"bytes\": %ld, \"us\": %.1f", words * (long)sizeof(int),
               1e6 * slowest / (double)(count > 0 ? count : 1));
    print_counters();
    free(all);
}

/* Uneven blocks: a third of the processes have no words, another third twice as many as the rest. */
static void uneven(MPI_Comm comm, long words, long number) {
    int me, n;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    int *counts = malloc(sizeof(int) * (size_t)n), *offsets = malloc(sizeof(int) * (size_t)n), total = 0;
    for (int i = 0; i < n; ++i) counts[i] = (int)((i + number) % 3 * words / 2), offsets[i] = total, total += counts[i] + 3;
    int *mine = malloc(sizeof(int) * (size_t)(counts[me] + 1)), *all = malloc(sizeof(int) * (size_t)total);
    for (int i = 0; i < counts[me]; ++i) mine[i] = word_of(number, me, i);
    MPI_Allgatherv(mine, counts[me], MPI_INT, all, counts, offsets, MPI_INT, comm);
    for (int i = 0; i < n; ++i) check(all + offsets[i], i, counts[i], number, "allgather of uneven blocks");
    free(mine), free(all), free(counts), free(offsets);
}

/* Two words in three: the received type has gaps, which must not change. */
static void with_gaps(long words, long number) {
    MPI_Datatype pairs;
    const long blocks = words / 2;
    int *mine = malloc((size_t)words * sizeof(int)), *all = malloc((size_t)(blocks * 3 * size) * sizeof(int));
    MPI_Type_vector(1, 2, 3, MPI_INT, &pairs);
    MPI_Type_create_resized(pairs, 0, 3 * sizeof(int), &pairs);
    MPI_Type_commit(&pairs);
    fill(mine, words, number);
    for (long i = 0; i < blocks * 3 * size; ++i) all[i] = -1;
    MPI_Allgather(mine, (int)(blocks * 2), MPI_INT, all, (int)blocks, pairs, MPI_COMM_WORLD);
    for (int from = 0; from < size; ++from)
        for (long i = 0; i < blocks * 3; ++i) {
            const int expected = i % 3 == 2 ? -1 : word_of(number, from, i / 3 * 2 + i % 3);
            if (all[from * blocks * 3 + i] != expected) fail("allgather of a type with gaps", number);
        }
    MPI_Type_free(&pairs);
    free(mine), free(all);
}

enum { kAtATime = 3 };

static void at_a_time(long words, long number) {
    int *mine[kAtATime], *all[kAtATime];
    MPI_Request requests[kAtATime];
    for (int i = 0; i < kAtATime; ++i) {
        mine[i] = malloc((size_t)words * sizeof(int)), all[i] = malloc((size_t)(words * size) * sizeof(int));
        fill(mine[i], words, number + i);
        MPI_Iallgather(mine[i], (int)words, MPI_INT, all[i], (int)words, MPI_INT, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(kAtATime, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kAtATime; ++i) {
        for (int from = 0; from < size; ++from) check(all[i] + from * words, from, words, number + i, "non-blocking allgather");
        free(mine[i]), free(all[i]);
    }
}

static void persistent(long words, long number) {
    int *mine = malloc((size_t)words * sizeof(int)), *all = malloc((size_t)(words * size) * sizeof(int));
    MPI_Request request;
    MPI_Allgather_init(mine, (int)words, MPI_INT, all, (int)words, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int start = 0; start < 4; ++start) {
        fill(mine, words, number + start);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int from = 0; from < size; ++from) check(all + from * words, from, words, number + start, "persistent allgather");
    }
    MPI_Request_free(&request);
    free(mine), free(all);
}

static void sum(long words, long number) {
    int *in = malloc((size_t)words * sizeof(int)), *out = malloc((size_t)words * sizeof(int));
    for (long i = 0; i < words; ++i) in[i] = rank + (int)(i % 1000 + number);
    MPI_Allreduce(in, out, (int)words, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (long i = 0; i < words; ++i)
        if (out[i] != size * (size - 1) / 2 + size * (int)(i % 1000 + number)) fail("allreduce", number);
    MPI_Allreduce(MPI_IN_PLACE, in, (int)words, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (memcmp(in, out, (size_t)words * sizeof(int)) != 0) fail("allreduce in place", number);
    free(in), free(out);
}

static void forms(long rounds, int joins) {
    static const long kWords[] = {8000, 30000, 120001};
    int* const all = malloc((size_t)(kWords[2] * size) * sizeof(int));
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 1, -rank, &part);
    if (joins) until_turns(all);
    for (long i = 0; i < rounds; ++i) {
        const long words = kWords[i % 3];
        gather(all, words, i, 1);
        uneven(MPI_COMM_WORLD, words, i);
        uneven(part, words, i);
        with_gaps(words, i);
        at_a_time(words, i);
        persistent(words, i);
        sum(400000 + i, i);
    }
    MPI_Comm_free(&part);
    free(all);
    if (rank == 0) printf("{\"operation\": \"forms\"");
    print_counters();
}

static void until_death(long bytes) {
    const long words = bytes / (long)sizeof(int);
    int* const all = malloc((size_t)(words * size) * sizeof(int));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int error = MPI_SUCCESS, i = 0; error == MPI_SUCCESS; ++i) {
        fill(all + rank * words, words, i);
        error = MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, all, (int)words, MPI_INT, MPI_COMM_WORLD);
        for (int from = 0; from < size && error == MPI_SUCCESS; ++from) check(all + from * words, from, words, i, "allgather");
        if (i == 20 && rank == 0) printf("running\n"), fflush(stdout);
    }
    printf("rank %d has noticed\n", rank), fflush(stdout);
    _exit(0);
}

int main(int argc, char** argv) {
    int level;
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char* const what = argc > 2 ? argv[1] : "";
    for (int i = 0; i < kCounters; ++i) counted(i);  // counts from now on
    const long first = argc > 2 ? atol(argv[2]) : 0, second = argc > 3 ? atol(argv[3]) : 1 << 20;
    if (!strcmp(what, "joined") || !strcmp(what, "plain"))
        gathers(first, second, what[0] == 'j');
    else if (!strcmp(what, "forms"))
        forms(first, argc > 3);
    else if (!strcmp(what, "until-death"))
        until_death(first);
    else
        return 2;
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
