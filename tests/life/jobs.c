// Checks that no state of ended jobs remains. A long-lived job connects to other jobs, one after the other:
//   jobs spawn  <cycles> [host]   spawns a child, exchanges messages with it and disconnects; the child ends
//   jobs visit  <cycles> [host]   like spawn, but the child disconnects at once, connects again through a port, and then ends
//   jobs meet   <cycles> [host]   two jobs repeatedly connect, exchange messages and disconnect
// `host`: where the other jobs are started. Ten times per run (or every TEST_EVERY cycles) rank 0 prints the resources that it, its
// launcher and the machine hold. After the first third the mappings, descriptors and memory must not grow any more.
#include <dirent.h>
#include <unistd.h>

#include "../mpi/check.h"

enum { kMessages = 12 };  // enough to open a direct ring

struct Held {
    long maps, descriptors, rss_kb, pss_kb, shared_kb;
};

static long value_in(const char* path, const char* name) {
    char line[256];
    long value = 0;
    FILE* file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name))) value += atol(line + strlen(name));
    if (file) fclose(file);
    return value;
}

static long lines_in(const char* path) {
    char block[4096];
    long lines = 0;
    size_t got;
    FILE* file = fopen(path, "r");
    while (file && (got = fread(block, 1, sizeof block, file)) > 0)
        for (size_t i = 0; i < got; i++) lines += block[i] == '\n';
    if (file) fclose(file);
    return lines;
}

static long files_in(const char* path) {
    long files = 0;
    DIR* folder = opendir(path);
    if (!folder) return 0;
    while (readdir(folder)) files++;
    closedir(folder);
    return files;
}

static struct Held held_by(int pid) {
    struct Held held;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    held.maps = lines_in(path);
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    held.descriptors = files_in(path);
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    held.rss_kb = value_in(path, "VmRSS:");
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    held.pss_kb = value_in(path, "Pss:");
    held.shared_kb = value_in("/proc/meminfo", "Shmem:");
    return held;
}

static void raise_to(struct Held* most, struct Held now) {
    if (now.maps > most->maps) most->maps = now.maps;
    if (now.descriptors > most->descriptors) most->descriptors = now.descriptors;
    if (now.rss_kb > most->rss_kb) most->rss_kb = now.rss_kb;
}

// Fails if `after` exceeds `before` by more than the state of a few ended jobs. Such state is collected periodically, so a few are always
// left; a leak would leave one per cycle.
static void expect_no_more(const char* who, struct Held before, struct Held after) {
    if (after.maps > before.maps + 40) fail_at(__FILE__, __LINE__, who, "mappings: %ld, then %ld", before.maps, after.maps);
    if (after.descriptors > before.descriptors + 20)
        fail_at(__FILE__, __LINE__, who, "descriptors: %ld, then %ld", before.descriptors, after.descriptors);
    if (after.rss_kb > before.rss_kb + 1024)
        fail_at(__FILE__, __LINE__, who, "memory: %ld KB, then %ld KB", before.rss_kb, after.rss_kb);
}

static void talk(MPI_Comm comm, int first) {
    int value = 0, rank;
    OK(MPI_Comm_rank(comm, &rank));
    for (int i = 0; i < kMessages; i++) {
        if (first) OK(MPI_Send(&i, 1, MPI_INT, rank, 0, comm));
        OK(MPI_Recv(&value, 1, MPI_INT, rank, 0, comm, MPI_STATUS_IGNORE));
        EXPECT_INT(value, i);
        if (!first) OK(MPI_Send(&i, 1, MPI_INT, rank, 0, comm));
    }
}

static MPI_Comm start(char* program, char* role, char* argument, MPI_Info info) {
    int size;
    MPI_Comm others;
    char* arguments[] = {role, argument, NULL};
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_spawn(program, arguments, size, info, 0, MPI_COMM_WORLD, &others, MPI_ERRCODES_IGNORE));
    return others;
}

static int launcher_pid(void) {
    const char* job = getenv("STARLING_JOB");
    return job ? atoi(job) : 0;
}

static int looks;            ///< whether this cycle measures mappings, descriptors and memory
static struct Held farther;  ///< resources of the child's launcher: another host's daemon, or this process's own launcher

static void spawn_one(char* program, char* port, MPI_Info info) {
    (void)port;
    MPI_Comm others = start(program, "child", looks ? "looks" : "-", info);
    talk(others, 1);
    if (looks) OK(MPI_Recv(&farther, (int)(sizeof farther / sizeof(long)), MPI_LONG, 0, 1, others, MPI_STATUS_IGNORE));
    OK(MPI_Comm_disconnect(&others));
}

static void be_child(MPI_Comm parent, int look) {
    int rank, parents;
    talk(parent, 0);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_remote_size(parent, &parents));
    const struct Held held = held_by(launcher_pid());
    for (int r = 0; look && rank == 0 && r < parents; r++)
        OK(MPI_Send(&held, (int)(sizeof held / sizeof(long)), MPI_LONG, r, 1, parent));
    OK(MPI_Comm_disconnect(&parent));
}

static void receive_one(char* program, char* port, MPI_Info info) {
    MPI_Comm others = start(program, "visitor", port, info), again;
    OK(MPI_Comm_disconnect(&others));
    OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &again));
    talk(again, 1);
    OK(MPI_Comm_disconnect(&again));
}

static void meet_one(char* program, char* port, MPI_Info info) {
    (void)program, (void)info;
    MPI_Comm others;
    OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others));
    talk(others, 1);
    OK(MPI_Comm_disconnect(&others));
}

static void print(long cycle, double seconds, double rate, struct Held own, struct Held launcher) {
    if (cycle == 0)
        printf(
            "  cycles  seconds  per s | rank 0: maps  fds  RSS KB  PSS KB | launcher: maps  fds  RSS KB  PSS KB | shared KB\n");
    printf("%8ld %8.1f %6.0f | %12ld %4ld %7ld %7ld | %14ld %4ld %7ld %7ld | %9ld\n", cycle, seconds, rate, own.maps,
           own.descriptors, own.rss_kb, own.pss_kb, launcher.maps, launcher.descriptors, launcher.rss_kb, launcher.pss_kb,
           own.shared_kb);
    fflush(stdout);
}

static void run(long cycles, void (*one)(char*, char*, MPI_Info), char* program, char* port, MPI_Info info) {
    const char* every_text = getenv("TEST_EVERY");
    const int launcher = launcher_pid();
    long every = every_text ? atol(every_text) : cycles / 10;
    struct Held own[3] = {{0}}, theirs[3] = {{0}}, beyond[3] = {{0}};
    int rank;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (every < 1) every = 1;
    double begin = MPI_Wtime(), last = begin;
    long last_cycle = 0;
    for (long cycle = 0; cycle <= cycles; cycle++) {
        const int third = cycle < cycles / 3 ? 0 : cycle < 2 * (cycles / 3) ? 1 : 2;
        // In a long run measure only in every 50th cycle, because measurements take longer than cycles.
        looks = cycles <= 2000 || cycle % 50 == 0;
        if (looks) {
            raise_to(&own[third], held_by(getpid()));
            if (launcher) raise_to(&theirs[third], held_by(launcher));
            raise_to(&beyond[third], farther);
        }
        if (rank == 0 && cycle % every == 0) {
            double now = MPI_Wtime();
            print(cycle, now - begin, cycle ? (double)(cycle - last_cycle) / (now - last) : 0, held_by(getpid()),
                  held_by(launcher));
            last = now;
            last_cycle = cycle;
        }
        if (cycle < cycles) one(program, port, info);
    }
    expect_no_more("this process", own[1], own[2]);
    if (rank == 0 && launcher) expect_no_more("the launcher", theirs[1], theirs[2]);
    expect_no_more("the children's launcher", beyond[1], beyond[2]);
    if (rank == 0 && farther.maps)
        printf("the children's launcher: at most %ld maps, %ld fds, %ld KB in the second third; %ld, %ld, %ld KB in the last\n",
               beyond[1].maps, beyond[1].descriptors, beyond[1].rss_kb, beyond[2].maps, beyond[2].descriptors,
               beyond[2].rss_kb);
}

int main(int argc, char** argv) {
    MPI_Comm parent, others = MPI_COMM_NULL;
    MPI_Info info = MPI_INFO_NULL;
    char port[MPI_MAX_PORT_NAME] = "";
    int rank;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_get_parent(&parent));
    const char* what = argc > 1 ? argv[1] : "spawn";
    const long cycles = argc > 2 ? atol(argv[2]) : 300;
    if (parent == MPI_COMM_NULL) {
        if (argc > 3) {
            OK(MPI_Info_create(&info));
            OK(MPI_Info_set(info, "host", argv[3]));
        }
        if (rank == 0) OK(MPI_Open_port(MPI_INFO_NULL, port));
        if (!strcmp(what, "meet")) {
            char text[24];
            snprintf(text, sizeof text, "%ld", cycles);
            others = start(argv[0], "partner", text, info);
            if (rank == 0) OK(MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, others));
            run(cycles, meet_one, argv[0], port, info);
            OK(MPI_Comm_disconnect(&others));
        } else {
            run(cycles, !strcmp(what, "visit") ? receive_one : spawn_one, argv[0], port, info);
        }
        if (rank == 0) OK(MPI_Close_port(port));
        if (info != MPI_INFO_NULL) OK(MPI_Info_free(&info));
    } else if (!strcmp(what, "partner")) {
        if (rank == 0) OK(MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, parent, MPI_STATUS_IGNORE));
        for (long i = 0; i < cycles; i++) {
            OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others));
            talk(others, 0);
            OK(MPI_Comm_disconnect(&others));
        }
        OK(MPI_Comm_disconnect(&parent));
    } else if (!strcmp(what, "visitor")) {
        OK(MPI_Comm_disconnect(&parent));
        OK(MPI_Comm_connect(argv[2], MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others));
        talk(others, 0);
        OK(MPI_Comm_disconnect(&others));
    } else {
        be_child(parent, argc > 2 && !strcmp(argv[2], "looks"));
    }
    OK(MPI_Finalize());
    return 0;
}
