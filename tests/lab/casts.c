/* Creates and frees communicators and runs collectives on them that multicast groups may carry; every result is checked. Plain MPI.
 *
 *   casts bcast COUNT BYTES     COUNT broadcasts with rotating roots, after two from each root
 *   casts joined COUNT BYTES    like bcast, but first broadcasts until those of every root use a group
 *   casts mixed ROUNDS          broadcasts, barriers and allreduces of changing size, on several communicators at a time
 *   casts churn COUNT           COUNT times: duplicate, broadcast, free; descriptors and memory must not grow
 *   casts alive COUNT           COUNT duplicates alive at a time, a broadcast on each, all freed
 *   casts subsets COUNT         COUNT communicators alive at a time, of changing subsets of at least three processes; all freed
 *   casts sharing ROUNDS        two communicators of the same processes and one of a subset, created and freed at different times
 *   casts spawn CHILDREN        broadcasts on inter-communicators of parents and children, and on communicators merged from them
 *   casts until-death           broadcasts and barriers until one fails, as after a death: exit code 0 if one failed
 *   casts making                like until-death, with communicators that are repeatedly created, used a few times and freed
 *   casts until FILE            like joined, with 20 KB, until rank 0 sees FILE; prints rank 0's progress and, at the end, the counters
 *
 * Rank 0 prints the operations and their duration. With a trailing --info SCHEME, communicators are created with the info key
 * starling_multicast. */
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
static MPI_Info info = MPI_INFO_NULL;

static void fail(const char* what, long which) {
    fprintf(stderr, "casts: rank %d: %s %ld is wrong\n", rank, what, which);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

static unsigned char byte_of(long number, long i) { return (unsigned char)(number * 31 + i * 7 + i / 251); }

static void broadcast(MPI_Comm comm, unsigned char* data, long bytes, int root, long number) {
    int me;
    MPI_Comm_rank(comm, &me);
    for (long i = 0; i < bytes; ++i) data[i] = me == root ? byte_of(number, i) : 0;
    MPI_Bcast(data, (int)bytes, MPI_BYTE, root, comm);
    for (long i = 0; i < bytes; ++i)
        if (data[i] != byte_of(number, i)) fail("broadcast", number);
}

static void sum(MPI_Comm comm, int count, long number) {
    int me, n;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    int *in = malloc(sizeof(int) * (size_t)count), *out = malloc(sizeof(int) * (size_t)count);
    for (int i = 0; i < count; ++i) in[i] = me + i + (int)number;
    MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < count; ++i)
        if (out[i] != n * (n - 1) / 2 + n * (i + (int)number)) fail("sum", number);
    free(in);
    free(out);
}

static void gather_all(MPI_Comm comm, int count, long number) {
    int me, n;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    int *mine = malloc(sizeof(int) * (size_t)count), *all = malloc(sizeof(int) * (size_t)(count * n));
    for (int i = 0; i < count; ++i) mine[i] = me * 1000 + i + (int)number;
    MPI_Allgather(mine, count, MPI_INT, all, count, MPI_INT, comm);
    for (int i = 0; i < count * n; ++i)
        if (all[i] != i / count * 1000 + i % count + (int)number) fail("allgather", number);
    free(mine);
    free(all);
}

/* A barrier that must not complete before the last rank has entered it: that rank sends rank 0 a message first. */
static void barrier(MPI_Comm comm, long number) {
    int me, n, token = 0;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    MPI_Request request;
    if (me == n - 1 && n > 1) MPI_Isend(&token, 1, MPI_INT, 0, 77, comm, &request);
    MPI_Barrier(comm);
    if (me == n - 1 && n > 1) MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (me != 0 || n == 1) return;
    (void)number;
    MPI_Recv(&token, 1, MPI_INT, n - 1, 77, comm, MPI_STATUS_IGNORE);
}

static MPI_Comm duplicate(MPI_Comm comm) {
    MPI_Comm made;
    MPI_Comm_dup_with_info(comm, info, &made);
    return made;
}

enum { kMessages = 1, kCounters = 5 };
static const char* const kNames[kCounters] = {"groups_ready", "group_messages", "datagrams_group_received", "group_repeats",
                                              "strangers_group"};
static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[kCounters];

static void count_from_now(void) {
    int provided;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    for (int i = 0; i < kCounters; ++i) {
        int index, count;
        if (MPI_T_pvar_get_index(kNames[i], MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS) fail("counter", i);
        MPI_T_pvar_handle_alloc(session, index, NULL, &handles[i], &count);
        MPI_T_pvar_start(session, handles[i]);
    }
}

static unsigned long long counted(int which) {
    unsigned long long mine = 0;
    MPI_T_pvar_read(session, handles[which], &mine);
    return mine;
}

static void count_no_more(void) {
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
}

/* Rank 0 prints the counters' sums over all ranks. */
static void tell_counters(void) {
    for (int i = 0; i < kCounters; ++i) {
        unsigned long long mine = counted(i), all = 0;
        MPI_Reduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0) printf("%s: %llu\n", kNames[i], all);
    }
    count_no_more();
}

/* Broadcasts from each root, until all broadcasts of a round have used a multicast group. */
static void until_joined(void) {
    unsigned char data[100];
    unsigned long long by_group = 0;
    count_from_now();
    for (long number = 0; by_group < (unsigned long long)size;) {
        const unsigned long long before = counted(kMessages);
        for (int root = 0; root < size; ++root, ++number) broadcast(MPI_COMM_WORLD, data, sizeof data, root, number);
        by_group = counted(kMessages) - before;
        MPI_Allreduce(MPI_IN_PLACE, &by_group, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    }
    count_no_more();
}

static void broadcasts(long count, long bytes) {
    unsigned char* data = malloc((size_t)bytes + 100);
    for (int i = 0; i < 2 * size; ++i) broadcast(MPI_COMM_WORLD, data, 100, i % size, i);
    MPI_Barrier(MPI_COMM_WORLD);
    for (long i = 0; i < count; ++i) broadcast(MPI_COMM_WORLD, data, bytes, (int)(i % size), i);
    free(data);
}

enum { kComms = 4, kLargest = 300000, kOpen = 6 };

/* Several non-blocking collectives at a time, on several communicators. */
static void outstanding(MPI_Comm* comms, unsigned char* data, long number) {
    static int in[kOpen], out[kOpen];
    MPI_Request requests[3 * kOpen];
    for (int i = 0; i < kOpen; ++i) {
        MPI_Comm comm = comms[i % kComms];
        int me, n, bytes = 50 + i * 1500;
        MPI_Comm_rank(comm, &me);
        MPI_Comm_size(comm, &n);
        unsigned char* mine = data + i * 10000;
        for (int k = 0; k < bytes; ++k) mine[k] = me == (i + number) % n ? byte_of(number + i, k) : 0;
        MPI_Ibcast(mine, bytes, MPI_BYTE, (int)((i + number) % n), comm, &requests[3 * i]);
        in[i] = me + i;
        MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, comm, &requests[3 * i + 1]);
        MPI_Ibarrier(comm, &requests[3 * i + 2]);
    }
    MPI_Waitall(3 * kOpen, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kOpen; ++i) {
        int n;
        MPI_Comm_size(comms[i % kComms], &n);
        if (out[i] != n * (n - 1) / 2 + n * i) fail("non-blocking sum", number);
        for (int k = 0; k < 50 + i * 1500; ++k)
            if (data[i * 10000 + k] != byte_of(number + i, k)) fail("non-blocking broadcast", number);
    }
}

static void mixed(MPI_Comm all, long rounds) {
    static const int kSizes[] = {1, 100, 1024, 5000, 65536, kLargest};
    unsigned char* data = malloc(kLargest);
    MPI_Comm comms[kComms];
    int me;
    MPI_Comm_rank(all, &me);
    comms[0] = all;
    comms[1] = duplicate(all);
    MPI_Comm_split(all, me % 2, -me, &comms[2]);  // two groups that share a context id, in reverse order
    MPI_Comm_split(all, me < 3, me, &comms[3]);
    for (long i = 0; i < rounds; ++i) {
        MPI_Comm comm = comms[i % kComms];
        int n;
        MPI_Comm_size(comm, &n);
        broadcast(comm, data, kSizes[i % 6], (int)(i * 5 % n), i);
        if (i % 2) barrier(comm, i);
        sum(comm, i % 7 == 6 ? 5000 : 1 + (int)(i % 40), i);
        gather_all(comm, 1 + (int)(i % 5) * 200, i);
        if (i % 8 == 7) outstanding(comms, data, i);
    }
    for (int i = 1; i < kComms; ++i) MPI_Comm_free(&comms[i]);
    free(data);
}

static int descriptors(void) {
    int count = 0;
    DIR* folder = opendir("/proc/self/fd");
    while (readdir(folder)) ++count;
    closedir(folder);
    return count;
}

static long resident_kilobytes(void) {
    long pages = 0, resident = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    if (fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    fclose(file);
    return resident * 4;
}

static void churn(long count) {
    unsigned char data[1024];
    int before = 0;
    long memory = 0;
    for (long i = 0; i < count; ++i) {
        MPI_Comm comm = duplicate(MPI_COMM_WORLD);
        broadcast(comm, data, sizeof data, (int)(i % size), i);
        MPI_Comm_free(&comm);
        if (i == count / 2) before = descriptors(), memory = resident_kilobytes();
    }
    const int after = descriptors();
    const long grown = resident_kilobytes() - memory;
    if (after > before + 8) fail("number of descriptors", after);
    if (grown > 4096) fail("memory that has grown by KB", grown);
}

static void alive(int count) {
    unsigned char data[1024];
    MPI_Comm* comms = malloc(sizeof(MPI_Comm) * (size_t)count);
    for (int i = 0; i < count; ++i) comms[i] = duplicate(MPI_COMM_WORLD);
    for (int round = 0; round < 2; ++round)
        for (int i = 0; i < count; ++i) broadcast(comms[i], data, sizeof data, (i + round) % size, i);
    for (int i = 0; i < count; ++i) MPI_Comm_free(&comms[i]);
    free(comms);
}

/* Creates the number-th subset of at least three processes (numbers wrap around). */
static MPI_Comm subset(int number) {
    int chosen[64], count = 0, sets = 1 << (size < 16 ? size : 16), mask;
    for (mask = sets - 1; number > 0 || __builtin_popcount((unsigned)mask) < 3;) {
        if (__builtin_popcount((unsigned)mask) >= 3) --number;
        mask = (mask + sets - 1) % sets;
    }
    for (int i = 0; i < size && i < 16; ++i)
        if (mask >> i & 1) chosen[count++] = i;
    MPI_Group all, some;
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, count, chosen, &some);
    if (mask >> rank & 1) MPI_Comm_create_group(MPI_COMM_WORLD, some, number, &made);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    return made;
}

static void subsets(int count) {
    unsigned char data[1024];
    MPI_Comm* comms = malloc(sizeof(MPI_Comm) * (size_t)count);
    for (int i = 0; i < count; ++i) comms[i] = subset(i);
    for (int round = 0; round < 12; ++round)
        for (int i = 0; i < count; ++i) {
            int n;
            if (comms[i] == MPI_COMM_NULL) continue;
            MPI_Comm_size(comms[i], &n);
            // Some communicators carry more traffic than others, and these change.
            const int times = i % 7 == round / 3 ? 30 : 1;
            for (int k = 0; k < times; ++k) broadcast(comms[i], data, 700, (i + round + k) % n, i + k);
        }
    for (int i = 0; i < count; ++i)
        if (comms[i] != MPI_COMM_NULL) MPI_Comm_free(&comms[i]);
    free(comms);
}

/* Frees communicators while others are created, so that a group that is being tested for one communicator is claimed by another or is no
 * longer needed. */
static void sharing(long rounds) {
    unsigned char data[1024];
    for (long i = 0; i < rounds; ++i) {
        MPI_Comm first = duplicate(MPI_COMM_WORLD), second, some;
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &second);
        MPI_Comm_split(MPI_COMM_WORLD, rank == i % size ? MPI_UNDEFINED : 1, rank, &some);
        for (int k = 0; k < i % 5; ++k) broadcast(first, data, 500, k, i);
        if (some != MPI_COMM_NULL) {
            for (int k = 0; k < i % 7; ++k) broadcast(some, data, 900, (int)(i + k) % (size - 1), i);
            if (i % 2) MPI_Comm_free(&some);
        }
        MPI_Comm_free(&first);
        for (int k = 0; k < 1 + i % 9; ++k) broadcast(second, data, 300, (int)(i + k) % size, i);
        MPI_Comm_free(&second);
        if (some != MPI_COMM_NULL) MPI_Comm_free(&some);
    }
}

/* Broadcasts on an inter-communicator, from each side in turn and from several roots. */
static void between(MPI_Comm inter, int parents) {
    unsigned char data[3000];
    for (int i = 0; i < 20; ++i) {
        int other, mine, me, from_me = (i % 2 == 0) == (parents != 0);
        MPI_Comm_remote_size(inter, &other);
        MPI_Comm_size(inter, &mine);
        MPI_Comm_rank(inter, &me);
        const int root = from_me ? i % mine : i % other;
        for (int k = 0; k < 3000; ++k) data[k] = from_me ? byte_of(i, k) : 0;
        MPI_Bcast(data, 3000, MPI_BYTE, from_me ? (me == root ? MPI_ROOT : MPI_PROC_NULL) : root, inter);
        for (int k = 0; k < 3000; ++k)
            if (data[k] != byte_of(i, k)) fail("broadcast between groups", i);
        int in = me, out;
        MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, inter);
        if (out != other * (other - 1) / 2) fail("sum of the other group", i);
        MPI_Barrier(inter);
    }
}

static void with_children(MPI_Comm inter, int parents) {
    MPI_Comm merged;
    between(inter, parents);
    MPI_Intercomm_merge(inter, !parents, &merged);
    mixed(merged, 24);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&inter);
}

static void spawn(const char* program, int children) {
    MPI_Comm inter;
    char* words[] = {"child", NULL};
    MPI_Comm_spawn(program, words, children, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    with_children(inter, 1);
}

static void until_death(void) {
    unsigned char data[2000] = {0};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0) printf("running\n"), fflush(stdout);
    for (long i = 0;; ++i) {
        int error = MPI_Bcast(data, sizeof data, MPI_BYTE, (int)(i % size), MPI_COMM_WORLD);
        if (error == MPI_SUCCESS) error = MPI_Barrier(MPI_COMM_WORLD);
        if (error != MPI_SUCCESS) break;
    }
    printf("rank %d has noticed\n", rank), fflush(stdout);
    _exit(0);
}

/* Creates communicators with changing members: if only one group is available, it moves from one communicator to the next. */
static void making(void) {
    unsigned char data[2000] = {0};
    MPI_Comm comm, some;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0) printf("running\n"), fflush(stdout);
    for (int error = MPI_SUCCESS; error == MPI_SUCCESS;) {
        error = MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
        if (error != MPI_SUCCESS) break;
        for (int i = 0; i < 2 * size && error == MPI_SUCCESS; ++i)
            error = MPI_Bcast(data, sizeof data, MPI_BYTE, i % size, comm);
        if (error == MPI_SUCCESS) error = MPI_Comm_split(comm, rank == 0, rank, &some);
        if (error != MPI_SUCCESS) break;
        MPI_Comm_set_errhandler(some, MPI_ERRORS_RETURN);
        for (int i = 0; i < 10 && error == MPI_SUCCESS; ++i) error = MPI_Bcast(data, sizeof data, MPI_BYTE, 0, some);
        if (error == MPI_SUCCESS) error = MPI_Comm_free(&some);
        if (error == MPI_SUCCESS) error = MPI_Comm_free(&comm);
    }
    printf("rank %d has noticed\n", rank), fflush(stdout);
    _exit(0);
}

/* Rank 0 decides when to stop, by a broadcast after each ten. It prints the broadcasts that it was the root of, those by a group among them,
 * and all ranks' broadcasts at the end. */
static void broadcasts_until(const char* end_file) {
    unsigned char* data = malloc(20000);
    const double limit = MPI_Wtime() + 600;
    until_joined();
    count_from_now();
    long i = 0, own = 0;
    for (int on = 1; on;) {
        for (int k = 0; k < 10; ++k, ++i) {
            broadcast(MPI_COMM_WORLD, data, 20000, (int)(i % size), i);
            own += i % size == 0;
        }
        on = access(end_file, F_OK) != 0 && MPI_Wtime() < limit;
        MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        ++own;
        if (rank == 0 && i % 50 == 0)
            printf("rank 0: %ld broadcasts, %llu by a group\n", own, counted(kMessages)), fflush(stdout);
    }
    if (rank == 0) printf("broadcasts: %ld\n", i + i / 10);
    tell_counters();
    free(data);
}

int main(int argc, char** argv) {
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    const char* what = argc > 1 ? argv[1] : "";
    const double start = MPI_Wtime();
    const long count = argc > 2 ? atol(argv[2]) : 0;
    if (argc > 2 && !strcmp(argv[argc - 2], "--info")) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "starling_multicast", argv[argc - 1]);
    }
    if (parent != MPI_COMM_NULL)
        with_children(parent, 0);
    else if (!strcmp(what, "bcast"))
        broadcasts(count, argc > 3 ? atol(argv[3]) : 1024);
    else if (!strcmp(what, "joined")) {
        until_joined();
        broadcasts(count, argc > 3 ? atol(argv[3]) : 1024);
    } else if (!strcmp(what, "mixed"))
        mixed(MPI_COMM_WORLD, count);
    else if (!strcmp(what, "churn"))
        churn(count);
    else if (!strcmp(what, "alive"))
        alive((int)count);
    else if (!strcmp(what, "subsets"))
        subsets((int)count);
    else if (!strcmp(what, "sharing"))
        sharing(count);
    else if (!strcmp(what, "making"))
        making();
    else if (!strcmp(what, "until") && argc > 2)
        broadcasts_until(argv[2]);
    else if (!strcmp(what, "spawn"))
        spawn(argv[0], (int)count);
    else if (!strcmp(what, "until-death"))
        until_death();
    else
        return 2;
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
    if (rank == 0 && parent == MPI_COMM_NULL)
        printf("%s %ld: all right on %d, %.3f s\n", what, count, size, MPI_Wtime() - start);
    MPI_Finalize();
    return 0;
}
