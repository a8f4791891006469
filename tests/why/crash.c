// Rank 1 crashes; argv[1] selects how.
#include <mpi.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank;
static char stack[1 << 16];
static sigjmp_buf again;

__attribute__((noinline)) static int inner(volatile int* address) { return *address + 1; }
__attribute__((noinline)) static int outer(volatile int* address) { return inner(address) + 1; }

static void handle(int signal) {
    char here;
    if (signal == SIGSEGV && &here >= stack && &here < stack + sizeof stack) siglongjmp(again, 1);
    _exit(3);
}

static void install(void) {
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    sigaltstack(&alternate, NULL);
    sigaction(SIGSEGV, &action, NULL);
}

int main(int argc, char** argv) {
    const char* way = argc > 1 ? argv[1] : "";
    if (!strcmp(way, "handler_before")) install();
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!strcmp(way, "handler_after")) install();
    if (rank == 1 && !strncmp(way, "handler", 7)) {
        if (sigsetjmp(again, 1) == 0) outer(NULL);
        puts("handled");
        fflush(stdout);
    }
    if (rank == 1 && !strcmp(way, "null")) return outer(NULL) + 1;
    if (rank == 1 && !strcmp(way, "bad_buffer")) MPI_Send((void*)16, 100000, MPI_INT, 0, 1, MPI_COMM_WORLD);
    if (rank == 0 && !strcmp(way, "bad_buffer"))
        MPI_Recv(malloc(400000), 100000, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1 && !strcmp(way, "abort")) abort();
    if (rank == 1 && !strcmp(way, "raise")) kill(getpid(), atoi(argv[2]));
    if (rank == 1 && !strcmp(way, "default")) {
        struct sigaction action;
        sigaction(SIGSEGV, NULL, &action);
        puts(action.sa_handler == SIG_DFL ? "default" : "handler");
    }
    if (rank == 1 && !strcmp(way, "child")) {
        const pid_t child = fork();
        if (child == 0) return outer(NULL);
        waitpid(child, NULL, 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
