// Ranks in user namespaces of their own, as rootless containers are, which may look into nobody outside: all of them ("all"), or every second
// one ("odd"), while the others may look into these. "hidden": all, and nobody may look into them either; not even a root outside may then.
// Exits with 77 where there are no such namespaces.
#define _GNU_SOURCE  // NOLINT: unshare
#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>

#include "dynamic.h"
#include "reached.h"

static void write_file(const char* path, const char* text) {
    FILE* file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && !fclose(file), "%s: %s", path, strerror(errno));
}

/// As `unshare -U -r` does it.
static void contain_myself(void) {
    char text[64];
    const unsigned user = getuid(), group = getgid();
    if (unshare(CLONE_NEWUSER) != 0) {
        printf("skipped: no user namespace can be made: %s\n", strerror(errno));
        exit(77);
    }
    write_file("/proc/self/setgroups", "deny");
    snprintf(text, sizeof text, "0 %u 1", user);
    write_file("/proc/self/uid_map", text);
    snprintf(text, sizeof text, "0 %u 1", group);
    write_file("/proc/self/gid_map", text);
}

int main(int argc, char** argv) {
    MPI_Comm parent;
    const char* rank = getenv("STARLING_RANK");
    CHECK(argc > 1, "all, odd or hidden?");
    const char* way = argv[1];
    if (strcmp(way, "odd") || !rank || atoi(rank) % 2) contain_myself();
    if (!strcmp(way, "hidden")) CHECK(prctl(PR_SET_DUMPABLE, 0) == 0, "PR_SET_DUMPABLE");
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    if (parent == MPI_COMM_NULL) {
        reach_by_messages(MPI_COMM_WORLD);
        reach_by_windows(MPI_COMM_WORLD, 3);
        reach_family(spawn_self(way, 2, MPI_COMM_WORLD));
    } else {
        reach_family(MPI_COMM_NULL);
    }
    OK(MPI_Finalize());
    return 0;
}
