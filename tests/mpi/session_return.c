// A process closes its last MPI session and calls MPI_Init afterwards. Meanwhile others send to it. Messages that a finalized process has
// sent arrive, and a process that was seen between its session and MPI_Init is not taken for one that has ended.
#define _DEFAULT_SOURCE
#include <unistd.h>

#include "check.h"

enum { kLong = 300000, kEager = 8000, kMany = 150, kPause = 700000 };

static char data[kLong];

static void expect(int from, int bytes, int tag, char value) {
    data[0] = data[bytes - 1] = 0;
    OK(MPI_Recv(data, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    EXPECT_INT(data[0], value);
    EXPECT_INT(data[bytes - 1], value);
}

/// Sends more than an inbox or a window of unacknowledged datagrams holds.
static void send_buffered(int to) {
    for (int i = 0; i < kMany; i++) OK(MPI_Bsend(data, kEager, MPI_BYTE, to, 1, MPI_COMM_WORLD));
    OK(MPI_Bsend(data, kLong, MPI_BYTE, to, 2, MPI_COMM_WORLD));
}

static void attach_buffer(void) {
    const int bytes = 2 * (kMany * (kEager + MPI_BSEND_OVERHEAD) + kLong + MPI_BSEND_OVERHEAD);
    OK(MPI_Buffer_attach(malloc((size_t)bytes), bytes));
}

/// Sends into the pause of the last rank, then connects to its port, and finalizes with a message that it has not received.
static void first(int last) {
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm inter;
    memset(data, 1, kLong);
    send_buffered(last);
    OK(MPI_Recv(port, sizeof port, MPI_CHAR, last, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    OK(MPI_Comm_disconnect(&inter));
    memset(data, 2, kLong);
    send_buffered(last);
}

/// Returns from its pause, and receives what the others have sent.
static void returning(int last) {
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm inter;
    for (int other = 1; other < last; other++) {
        for (int i = 0; i < kMany; i++) expect(other, kEager, 1, 3);
        expect(other, kLong, 2, 3);
    }
    if (last == 0) return;
    for (int i = 0; i < kMany; i++) expect(0, kEager, 1, 1);
    expect(0, kLong, 2, 1);
    OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Send(port, sizeof port, MPI_CHAR, 0, 3, MPI_COMM_WORLD));
    OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    OK(MPI_Comm_disconnect(&inter));
    OK(MPI_Close_port(port));
    usleep(kPause);
    for (int i = 0; i < kMany; i++) expect(0, kEager, 1, 2);
    expect(0, kLong, 2, 2);
}

int main(int argc, char** argv) {
    int rank, last;
    MPI_Session session;
    MPI_Group group;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Group_rank(group, &rank));
    OK(MPI_Group_size(group, &last));
    --last;
    OK(MPI_Group_free(&group));
    OK(MPI_Session_finalize(&session));
    usleep(rank == last ? kPause : kPause / 4);
    OK(MPI_Init(&argc, &argv));
    attach_buffer();
    memset(data, 3, kLong);
    if (rank == last)
        returning(last);
    else if (rank == 0)
        first(last);
    else
        send_buffered(last);
    OK(MPI_Finalize());
    return 0;
}
