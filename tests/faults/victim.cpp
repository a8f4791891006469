// A program to be killed: its ranks work until they are killed, for TEST_SECONDS at most, and until the file TEST_END exists. The argument
// selects the work:
//   ring       messages of all sizes around a ring
//   reduce     collectives
//   blocked    every rank waits for a message that rank 0 never sends
//   compute    no MPI call for a long time
//   threads    two threads per rank
//   family     every rank spawns two children and exchanges messages with them; a dead child is replaced
//   names      ports are opened, published and looked up
// Each rank prints "rank N pid P" when it has started to work. SIGUSR1 makes a rank call abort(); SIGUSR2 makes it exit without
// MPI_Finalize.
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "../mpi/dynamic.h"

namespace {

int rank, size;
double deadline;
const char* end_file;  // null: only the deadline ends the work

bool more() { return MPI_Wtime() < deadline && !(end_file && access(end_file, F_OK) == 0); }

// Returns whether all ranks work for another round. Rank 0 decides, so that all stop after the same round.
bool more_together(MPI_Comm comm) {
    int go = more();
    OK(MPI_Bcast(&go, 1, MPI_INT, 0, comm));
    return go;
}

void ring() {
    const int sizes[] = {8, 3000, 50000, 700000};
    std::vector<char> out(700000), in(700000);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    while (more_together(MPI_COMM_WORLD))
        for (int n : sizes)
            OK(MPI_Sendrecv(out.data(), n, MPI_BYTE, to, 1, in.data(), n, MPI_BYTE, from, 1, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
}

void reduce() {
    std::vector<double> in(20000, 1), out(20000);
    while (more_together(MPI_COMM_WORLD)) {
        for (int i = 0; i < 50; i++) OK(MPI_Allreduce(in.data(), out.data(), 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
        OK(MPI_Allreduce(in.data(), out.data(), 20000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
        OK(MPI_Alltoall(in.data(), 100, MPI_DOUBLE, out.data(), 100, MPI_DOUBLE, MPI_COMM_WORLD));
    }
}

void blocked() {
    char byte = 0;
    if (rank != 0) {
        OK(MPI_Recv(&byte, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else {
        while (more()) usleep(20000);
        for (int r = 1; r < size; r++) OK(MPI_Send(&byte, 1, MPI_BYTE, r, 1, MPI_COMM_WORLD));
    }
}

void compute() {
    while (more()) usleep(20000);
}

void threads() {
    std::vector<std::thread> all;
    for (int t = 0; t < 2; t++)
        all.emplace_back([t] {
            int to = (rank + 1) % size, from = (rank + size - 1) % size, in, i = 0;
            for (bool go = true; go; i++) {
                int out = rank ? i : more() ? i : -1;  // the value -1 passes around the ring once and ends every rank's loop
                if (rank != 0) {
                    OK(MPI_Recv(&in, 1, MPI_INT, from, t, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                    out = in;
                }
                if (size > 1) OK(MPI_Send(&out, 1, MPI_INT, to, t, MPI_COMM_WORLD));
                if (rank == 0 && size > 1) OK(MPI_Recv(&in, 1, MPI_INT, from, t, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                go = out >= 0;
                if (size == 1 && !more()) go = false;
            }
        });
    for (std::thread& thread : all) thread.join();
}

MPI_Comm new_child() {
    MPI_Comm inter = spawn_self("child", 1, MPI_COMM_SELF);
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    return inter;
}

// Every parent spawns two children; it replaces a dead child and prints a line.
void family() {
    MPI_Comm children[2] = {new_child(), new_child()};
    int value = 0, stop = -1;
    while (more())
        for (MPI_Comm& child : children) {
            int code = MPI_Send(&value, 1, MPI_INT, 0, 1, child);
            if (code == MPI_SUCCESS) code = MPI_Recv(&value, 1, MPI_INT, 0, 2, child, MPI_STATUS_IGNORE);
            if (code == MPI_SUCCESS) continue;
            printf("rank %d lost a child\n", rank);
            fflush(stdout);
            OK(MPI_Comm_free(&child));
            child = new_child();
        }
    for (MPI_Comm& child : children) {
        MPI_Send(&stop, 1, MPI_INT, 0, 1, child);
        MPI_Comm_disconnect(&child);
    }
}

void serve_parent(MPI_Comm parent) {
    int value = 0;
    while (value >= 0) {
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 1, parent, MPI_STATUS_IGNORE));
        if (value >= 0) OK(MPI_Send(&value, 1, MPI_INT, 0, 2, parent));
    }
    OK(MPI_Comm_disconnect(&parent));
}

void names() {
    char port[MPI_MAX_PORT_NAME], found[MPI_MAX_PORT_NAME];
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    while (more()) {
        std::string service = "fault test " + std::to_string(getpid());
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        // The daemon may be killed between any two of these calls: the next call starts another daemon.
        if (MPI_Publish_name(service.c_str(), MPI_INFO_NULL, port) == MPI_SUCCESS) {
            MPI_Lookup_name(service.c_str(), MPI_INFO_NULL, found);
            MPI_Unpublish_name(service.c_str(), MPI_INFO_NULL, port);
        }
        OK(MPI_Close_port(port));
        usleep(1000);
    }
}

}  // namespace

int main(int argc, char** argv) {
    signal(SIGUSR1, [](int) { abort(); });
    signal(SIGUSR2, [](int) { _exit(0); });
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    const char* seconds = getenv("TEST_SECONDS");
    deadline = MPI_Wtime() + (seconds ? atof(seconds) : 1);
    end_file = getenv("TEST_END");
    MPI_Comm parent;
    OK(MPI_Comm_get_parent(&parent));
    std::string what = argc > 1 ? argv[1] : "ring";
    printf("%s %d pid %d\n", parent == MPI_COMM_NULL ? "rank" : "child", rank, (int)getpid());
    fflush(stdout);
    if (parent != MPI_COMM_NULL)
        serve_parent(parent);
    else if (what == "ring")
        ring();
    else if (what == "reduce")
        reduce();
    else if (what == "blocked")
        blocked();
    else if (what == "compute")
        compute();
    else if (what == "threads")
        threads();
    else if (what == "family")
        family();
    else if (what == "names")
        names();
    else
        CHECK(false, "what is %s?", what.c_str());
    OK(MPI_Finalize());
    return 0;
}
