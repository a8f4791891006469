// MPI_Comm_join waits for the other side while another thread of the process sends the message that the other side is waiting for.
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

/// Returns the address under which the other rank reaches this host: the loopback address if both ranks are on one host.
static struct in_addr address_of_host(const char* mine, const char* name) {
    struct in_addr found = {htonl(INADDR_LOOPBACK)};
    struct addrinfo hints = {.ai_family = AF_INET}, *list = NULL;
    if (strcmp(mine, name) == 0) return found;
    CHECK(getaddrinfo(name, NULL, &hints, &list) == 0, "host %s is not known", name);
    found = ((struct sockaddr_in*)(void*)list->ai_addr)->sin_addr;
    freeaddrinfo(list);
    return found;
}

static int connected_socket(int rank) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t length = sizeof address;
    char mine[MPI_MAX_PROCESSOR_NAME] = "", theirs[MPI_MAX_PROCESSOR_NAME] = "";
    int bytes;
    OK(MPI_Get_processor_name(mine, &bytes));
    OK(MPI_Sendrecv(mine, sizeof mine, MPI_CHAR, 1 - rank, 2, theirs, sizeof theirs, MPI_CHAR, 1 - rank, 2, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0);
    if (rank == 0) {
        CHECK(bind(fd, (struct sockaddr*)&address, sizeof address) == 0);
        CHECK(listen(fd, 1) == 0);
        CHECK(getsockname(fd, (struct sockaddr*)&address, &length) == 0);
        OK(MPI_Send(&address.sin_port, 1, MPI_UINT16_T, 1, 1, MPI_COMM_WORLD));
        const int connection = accept(fd, NULL, NULL);
        CHECK(connection >= 0);
        close(fd);
        return connection;
    }
    OK(MPI_Recv(&address.sin_port, 1, MPI_UINT16_T, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    address.sin_addr = address_of_host(mine, theirs);
    CHECK(connect(fd, (struct sockaddr*)&address, sizeof address) == 0);
    return fd;
}

static void* join(void* socket) {
    MPI_Comm comm;
    OK(MPI_Comm_join(*(int*)socket, &comm));
    OK(MPI_Comm_disconnect(&comm));
    return NULL;
}

int main(int argc, char** argv) {
    int level, rank, go = 1;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (rank < 2) {
        int fd = connected_socket(rank);
        if (rank == 0) {
            pthread_t thread;
            CHECK(!pthread_create(&thread, NULL, join, &fd));
            usleep(100000);
            OK(MPI_Send(&go, 1, MPI_INT, 1, 0, MPI_COMM_WORLD));
            pthread_join(thread, NULL);
        } else {
            OK(MPI_Recv(&go, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            join(&fd);
        }
        close(fd);
    }
    OK(MPI_Finalize());
    return 0;
}
