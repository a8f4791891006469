// Two jobs with separate launchers connect: `meet server FILE` and `meet client FILE`. They connect through a port name that the server
// writes to the file, and, with TEST_PUBLISH set, through a published name too.
#include "dynamic.h"

static void exchange(MPI_Comm inter) {
    int rank, local, remote, one = 1, sum;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_size(inter, &local));
    OK(MPI_Comm_remote_size(inter, &remote));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter));
    EXPECT_INT(sum, remote);
    enum { kBytes = 500000 };
    char *out = malloc(kBytes), *in = malloc(kBytes);
    fill_bytes(out, kBytes, rank);
    for (int r = 0; r < remote; r++) {
        MPI_Request request;
        OK(MPI_Isend(out, kBytes, MPI_BYTE, r, 1, inter, &request));
        OK(MPI_Recv(in, kBytes, MPI_BYTE, r, 1, inter, MPI_STATUS_IGNORE));
        CHECK(first_wrong_byte(in, kBytes, r) < 0, "from %d", r);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    free(in);
    free(out);
    MPI_Comm merged;
    int size;
    OK(MPI_Intercomm_merge(inter, 0, &merged));
    OK(MPI_Comm_size(merged, &size));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged));
    EXPECT_INT(sum, local + remote);
    OK(MPI_Comm_disconnect(&merged));
}

static void serve(const char* file, const char* service, int rank) {
    char port[MPI_MAX_PORT_NAME] = "", temporary[PATH_MAX];
    MPI_Comm inter;
    if (rank == 0) {
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        if (service) OK(MPI_Publish_name(service, MPI_INFO_NULL, port));
        snprintf(temporary, sizeof temporary, "%s.new", file);
        FILE* out = fopen(temporary, "w");
        CHECK(out != NULL, "%s", temporary);
        fprintf(out, "%s\n", port);
        fclose(out);
        CHECK(rename(temporary, file) == 0, "%s", file);
    }
    for (int i = 0; i < 2; i++) {
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
        exchange(inter);
        OK(MPI_Comm_disconnect(&inter));
    }
    if (rank == 0) {
        if (service) OK(MPI_Unpublish_name(service, MPI_INFO_NULL, port));
        OK(MPI_Close_port(port));
    }
}

static void visit(const char* file, const char* service, int rank) {
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    if (rank == 0) {
        FILE* in = NULL;
        for (int i = 0; i < 20000 && !in; i++, usleep(10000)) in = fopen(file, "r");
        CHECK(in && fgets(port, sizeof port, in), "%s", file);
        fclose(in);
        port[strcspn(port, "\n")] = 0;
        if (service) {
            char looked_up[MPI_MAX_PORT_NAME];
            OK(MPI_Lookup_name(service, MPI_INFO_NULL, looked_up));
            CHECK(strcmp(looked_up, port) == 0, "%s is not %s", looked_up, port);
        }
    }
    for (int i = 0; i < 2; i++) {
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
        exchange(inter);
        OK(MPI_Comm_disconnect(&inter));
    }
}

int main(int argc, char** argv) {
    int rank;
    OK(MPI_Init(&argc, &argv));
    CHECK(argc == 3, "meet server|client FILE");
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    const char* service = getenv("TEST_PUBLISH") ? argv[2] : NULL;
    if (strcmp(argv[1], "server") == 0)
        serve(argv[2], service, rank);
    else
        visit(argv[2], service, rank);
    OK(MPI_Finalize());
    return 0;
}
