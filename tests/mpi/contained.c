// Ranks in user namespaces, like rootless containers. The argument selects the setup; exits with 77 if the kernel refuses such namespaces.
// "all": every rank has a separate user namespace and cannot access processes outside it. "odd": every second rank has one, and the ranks
// without one can access the others. "hidden": like "all", but no process can access the ranks, not even root outside. "pids": each rank
// has a PID namespace, so all have the same pid, but see the host's /proc. "odd_pids": every second rank has a PID namespace. "proc": each
// rank has a /proc and a user namespace, as in a container. "none": mpiexec itself runs in such surroundings (other_proc).
#define _GNU_SOURCE  // NOLINT: unshare
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "dynamic.h"
#include "reached.h"

static void write_file(const char* path, const char* text) {
    FILE* file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && !fclose(file), "%s: %s", path, strerror(errno));
}

static void skip(const char* what) {
    printf("skipped: %s: %s\n", what, strerror(errno));
    exit(77);
}

/// Enters a new user namespace, like `unshare -U -r`.
static void contain_myself(void) {
    char text[64];
    const unsigned user = getuid(), group = getgid();
    if (unshare(CLONE_NEWUSER) != 0) skip("no user namespace can be made");
    write_file("/proc/self/setgroups", "deny");
    snprintf(text, sizeof text, "0 %u 1", user);
    write_file("/proc/self/uid_map", text);
    snprintf(text, sizeof text, "0 %u 1", group);
    write_file("/proc/self/gid_map", text);
}

/// Continues in a child, the first process of a new PID namespace, like `unshare -p -f`. All ranks use the same addresses, so that an
/// access to the wrong process would find data.
static void number_myself(const char* way) {
    const int own_proc = !strcmp(way, "proc");
    if (unshare(own_proc ? CLONE_NEWPID | CLONE_NEWNS : CLONE_NEWPID) != 0) skip("no PID namespace can be made");
    const pid_t child = fork();
    CHECK(child >= 0, "fork: %s", strerror(errno));
    if (child > 0) {
        int status;
        CHECK(waitpid(child, &status, 0) == child, "waitpid: %s", strerror(errno));
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    CHECK(!own_proc || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "mount: %s", strerror(errno));
    if (own_proc && mount("proc", "/proc", "proc", 0, NULL) != 0) skip("no /proc can be mounted");
    personality(ADDR_NO_RANDOMIZE);
    execl("/proc/self/exe", "contained", way, "inside", (char*)NULL);
    CHECK(0, "execl: %s", strerror(errno));
}

int main(int argc, char** argv) {
    MPI_Comm parent;
    const char* rank = getenv("STARLING_RANK");
    CHECK(argc > 1, "all, odd, hidden, pids, odd_pids, proc or none?");
    const char* way = argv[1];
    if (argc == 2 && strcmp(way, "none") && (strncmp(way, "odd", 3) || !rank || atoi(rank) % 2)) {
        if (!strstr(way, "pids") || geteuid() != 0) contain_myself();
        if (strstr(way, "pids") || !strcmp(way, "proc")) number_myself(way);
    }
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
