#define _GNU_SOURCE
#include "placement.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { kPatience = 30 }; /* seconds: a runner that says nothing for so long is gone */

/* The connection to the runner; -1: there is none. */
static int runner(void) {
    static int connection = -2;
    if (connection != -2) return connection;
    const char* path = getenv("BENCH_PLACEMENT");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    connection = -1;
    if (!path || strlen(path) >= sizeof address.sun_path) return connection;
    strcpy(address.sun_path, path);
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {kPatience, 0};
    setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(made, (struct sockaddr*)&address, sizeof address) == 0) {
        connection = made;
    } else {
        close(made);
    }
    return connection;
}

int bench_placement(int processes, double* placement) {
    char line[64];
    int length = snprintf(line, sizeof line, "%d %d\n", processes, sched_getcpu());
    *placement = 0;
    if (runner() < 0 || send(runner(), line, (size_t)length, MSG_NOSIGNAL) != length) return 0;
    ssize_t got = recv(runner(), line, sizeof line - 1, 0); /* one short line, sent at once */
    if (got <= 0) return 0;
    line[got] = '\0';
    *placement = atof(line);
    return strstr(line, "again") != NULL;
}
