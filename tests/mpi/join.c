// Tests MPI_Comm_join over connected sockets: pairs of ranks connect over TCP, over the loopback device if they share a host, and exchange
// messages on the new inter-communicator. Afterwards the socket is usable again.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "dynamic.h"

// Returns the peer's address. Within a host only the loopback device is needed.
static in_addr_t address_of(const char* host, const char* own) {
    struct addrinfo hints = {.ai_family = AF_INET}, *found;
    if (strcmp(host, own) == 0) return htonl(INADDR_LOOPBACK);
    CHECK(getaddrinfo(host, NULL, &hints, &found) == 0, "%s has no address", host);
    in_addr_t address = ((struct sockaddr_in*)found->ai_addr)->sin_addr.s_addr;
    freeaddrinfo(found);
    return address;
}

static int connected_socket(int rank, int peer) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    char own[MPI_MAX_PROCESSOR_NAME] = "", theirs[MPI_MAX_PROCESSOR_NAME] = "";
    int name_length;
    OK(MPI_Get_processor_name(own, &name_length));
    OK(MPI_Sendrecv(own, sizeof own, MPI_CHAR, peer, 2, theirs, sizeof theirs, MPI_CHAR, peer, 2, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0);
    if (rank < peer) {
        CHECK(bind(fd, (struct sockaddr*)&address, sizeof address) == 0);
        CHECK(listen(fd, 1) == 0);
        CHECK(getsockname(fd, (struct sockaddr*)&address, &length) == 0);
        OK(MPI_Send(&address.sin_port, 1, MPI_UINT16_T, peer, 1, MPI_COMM_WORLD));
        int connection = accept(fd, NULL, NULL);
        CHECK(connection >= 0);
        close(fd);
        return connection;
    }
    OK(MPI_Recv(&address.sin_port, 1, MPI_UINT16_T, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    address.sin_addr.s_addr = address_of(theirs, own);
    CHECK(connect(fd, (struct sockaddr*)&address, sizeof address) == 0);
    return fd;
}

int main(int argc, char** argv) {
    int rank, size;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    int peer = rank ^ 1;
    if (peer < size) {
        int fd = connected_socket(rank, peer);
        for (int i = 0; i < 3; i++) {
            MPI_Comm inter;
            int local, remote, value = rank + i, got;
            OK(MPI_Comm_join(fd, &inter));
            CHECK(inter != MPI_COMM_NULL, "MPI_Comm_join found no network path");
            OK(MPI_Comm_size(inter, &local));
            OK(MPI_Comm_remote_size(inter, &remote));
            EXPECT_INT(local, 1);
            EXPECT_INT(remote, 1);
            OK(MPI_Sendrecv(&value, 1, MPI_INT, 0, 1, &got, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
            EXPECT_INT(got, peer + i);
            OK(MPI_Comm_disconnect(&inter));
            char mine = (char)('a' + rank), theirs = 0;  // the socket is unused, and the program may use it again
            CHECK(write(fd, &mine, 1) == 1);
            CHECK(read(fd, &theirs, 1) == 1 && theirs == (char)('a' + peer),
                  "the socket does not contain just the peer's byte");
        }
        close(fd);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    return 0;
}
