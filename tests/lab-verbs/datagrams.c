/* Exchanges messages of changing sizes between all processes and checks every byte. Runs until the time is over and every process has PORTS
 * ports and has sent on them. Then each process prints how its messages were sent:
 *
 * datagrams SECONDS [PORTS [LARGEST]] "rank 0: verbs 4711 udp 12 rc 0 tcp 0 ports 1". Messages have 1 to LARGEST bytes (default 12000). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* const kWays[] = {"messages_verbs", "messages_udp", "messages_rc", "messages_tcp", "verbs_ports"};
enum { kCount = sizeof kWays / sizeof *kWays };
static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[kCount];

static void count(void) {
    MPI_T_pvar_session_create(&session);
    for (int k = 0; k < kCount; ++k) {
        int index, continuous, values, other[4], length = 0;
        MPI_Datatype type;
        MPI_T_enum all;
        for (int variable = 0; variable < 2; ++variable) {
            const int class = variable == 0 ? MPI_T_PVAR_CLASS_COUNTER : MPI_T_PVAR_CLASS_LEVEL;
            if (MPI_T_pvar_get_index(kWays[k], class, &index) != MPI_SUCCESS) continue;
            MPI_T_pvar_get_info(index, NULL, NULL, &other[0], &other[1], &type, &all, NULL, &length, &other[2], &other[3],
                                &continuous, &values);
            MPI_T_pvar_handle_alloc(session, index, NULL, &handles[k], &values);
            if (!continuous) MPI_T_pvar_start(session, handles[k]);
        }
        if (!handles[k]) {
            fprintf(stderr, "datagrams: there is no counter %s\n", kWays[k]);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
}

static unsigned long long counted(int k) {
    unsigned long long value = 0;
    MPI_T_pvar_read(session, handles[k], &value);
    return value;
}

static unsigned mix(unsigned a, unsigned b) {
    unsigned x = a * 2654435761u ^ b * 2246822519u;
    x ^= x >> 15;
    return x * 2654435769u;
}

int main(int argc, char** argv) {
    int rank, size, provided, go_on = 1;
    const double seconds = argc > 1 ? atof(argv[1]) : 1;
    const unsigned long long ports = argc > 2 ? (unsigned long long)atoi(argv[2]) : 0;
    const int largest = argc > 3 ? atoi(argv[3]) : 12000;
    unsigned char* const out = malloc((size_t)largest);
    unsigned char* const in = malloc((size_t)largest);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    count();
    const double end = MPI_Wtime() + seconds;
    unsigned round = 0;
    for (; go_on; ++round) {
        const int distance = 1 + (int)(round % (unsigned)(size > 1 ? size - 1 : 1));
        const int to = (rank + distance) % size, from = (rank + size - distance) % size;
        const int sending = 1 + (int)(mix(round, (unsigned)rank) % (unsigned)largest);
        const int receiving = 1 + (int)(mix(round, (unsigned)from) % (unsigned)largest);
        MPI_Status status;
        int bytes;
        for (int i = 0; i < sending; ++i) out[i] = (unsigned char)(round + (unsigned)i * 7u + (unsigned)rank);
        memset(in, 0, (size_t)receiving);
        MPI_Sendrecv(out, sending, MPI_BYTE, to, 1, in, largest, MPI_BYTE, from, 1, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        for (int i = 0; i < receiving; ++i) {
            if (bytes == receiving && in[i] == (unsigned char)(round + (unsigned)i * 7u + (unsigned)from)) continue;
            fprintf(stderr, "datagrams: rank %d: byte %d of %d from rank %d is wrong\n", rank, i, bytes, from);
            MPI_Abort(MPI_COMM_WORLD, 9);
        }
        if (round == 0 && rank == 0) {
            puts("running");
            fflush(stdout);
        }
        const int wanted = MPI_Wtime() < end || counted(4) < ports || (ports > 0 && counted(0) == 0);
        MPI_Allreduce(&wanted, &go_on, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d: verbs %llu udp %llu rc %llu tcp %llu ports %llu rounds %u\n", rank, counted(0), counted(1), counted(2),
           counted(3), counted(4), round);
    MPI_T_pvar_session_free(&session);
    MPI_Finalize();
    MPI_T_finalize();
    free(out);
    free(in);
    return 0;
}
