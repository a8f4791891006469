// A child that dies causes an error on the inter-communicator under MPI_ERRORS_RETURN, and the parent survives. The child dies before its
// first message, after it, while a receive waits for it, or during a large message; by signal, by exit and by abort(). Afterwards another
// spawn must work.
#include <signal.h>

#include "dynamic.h"

enum { kLarge = 8 << 20 };

static void die(const char* how) {
    if (strstr(how, "kill")) raise(SIGKILL);
    if (strstr(how, "exit")) _exit(3);
    if (strstr(how, "abort")) abort();
    if (strstr(how, "segv")) raise(SIGSEGV);
    fail_at(__FILE__, __LINE__, "die", "%s", how);
}

static void child(const char* how) {
    MPI_Comm parent;
    OK(MPI_Comm_get_parent(&parent));
    int value = 1;
    if (strncmp(how, "early", 5) == 0) die(how);
    OK(MPI_Send(&value, 1, MPI_INT, 0, 1, parent));
    if (strncmp(how, "late", 4) == 0) {
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 2, parent, MPI_STATUS_IGNORE));
        die(how);
    }
    if (strncmp(how, "while", 5) == 0) {  // waits until the parent is surely in its receive
        usleep(100000);
        die(how);
    }
    OK(MPI_Barrier(parent));
    OK(MPI_Comm_disconnect(&parent));
}

static void expect_failure(int code, const char* how, const char* what) {
    int class;
    OK(MPI_Error_class(code, &class));
    CHECK(class != MPI_SUCCESS, "%s: %s a dead child succeeded", how, what);
}

static void parent_of(const char* how) {
    MPI_Comm inter = spawn_self(how, 1, MPI_COMM_SELF);
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    int value = 0;
    if (strncmp(how, "early", 5) != 0) {
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
        EXPECT_INT(value, 1);
    }
    if (strncmp(how, "late", 4) == 0) OK(MPI_Send(&value, 1, MPI_INT, 0, 2, inter));
    expect_failure(MPI_Recv(&value, 1, MPI_INT, 0, 7, inter, MPI_STATUS_IGNORE), how, "receiving from");
    expect_failure(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, inter, MPI_STATUS_IGNORE), how,
                   "receiving from any");
    char* large = calloc(1, kLarge);
    expect_failure(MPI_Ssend(large, kLarge, MPI_BYTE, 0, 8, inter), how, "a synchronous send to");
    free(large);
    MPI_Request request;
    int code = MPI_Irecv(&value, 1, MPI_INT, 0, 9, inter, &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_failure(code, how, "Irecv and Wait from");
    OK(MPI_Comm_free(&inter));
}

int main(int argc, char** argv) {
    MPI_Comm parent;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        child(argv[1]);
        OK(MPI_Finalize());
        return 0;
    }
    const char* const ways[] = {"early kill", "late kill", "while kill", "early exit", "late exit", "while abort", "late segv"};
    for (int i = 0; i < 7; i++) {
        parent_of(ways[i]);
        MPI_Comm inter = spawn_self("well", 1, MPI_COMM_SELF);
        int value;
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
        OK(MPI_Barrier(inter));
        OK(MPI_Comm_disconnect(&inter));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));  // checks that the parents' MPI_COMM_WORLD still works
    OK(MPI_Finalize());
    return 0;
}
