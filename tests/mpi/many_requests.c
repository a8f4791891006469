// Ten thousand requests at a time, of mixed sizes, completed in ways that must not take quadratic time.
#include "check.h"

enum { kMany = 10000 };

static int bytes_of(int i) { return i % 97 == 0 ? 20000 : i % 13 == 0 ? 1500 : 8; }

int main(int argc, char** argv) {
    int rank, size;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    int to = (rank + 1) % size, from = (rank + size - 1) % size, many = size > 4 ? kMany / 4 : kMany;
    char** in = malloc(many * sizeof *in);
    char* out = malloc(20000);
    fill_bytes(out, 20000, 1);
    MPI_Request* requests = malloc(2 * many * sizeof *requests);
    for (int reverse = 0; reverse < 2; reverse++) {
        for (int i = 0; i < many; i++) {
            in[i] = calloc(1, bytes_of(i));
            OK(MPI_Irecv(in[i], bytes_of(i), MPI_BYTE, from, reverse ? i : 7, MPI_COMM_WORLD, &requests[i]));
        }
        for (int k = 0; k < many; k++) {
            int i = reverse ? many - 1 - k : k;  // reversed: each match searches the posted queue
            OK(MPI_Isend(out, bytes_of(i), MPI_BYTE, to, reverse ? i : 7, MPI_COMM_WORLD, &requests[many + i]));
        }
        if (reverse) {
            int done = 0, flag = 0;
            while (done < 2 * many) {
                int index;
                OK(MPI_Waitany(2 * many - done, requests + done, &index, MPI_STATUS_IGNORE));
                if (index == MPI_UNDEFINED) break;
                while (done < 2 * many && requests[done] == MPI_REQUEST_NULL) done++;
                if (++flag > 200) break;
            }
            OK(MPI_Waitall(2 * many, requests, MPI_STATUSES_IGNORE));
        } else {
            OK(MPI_Waitall(2 * many, requests, MPI_STATUSES_IGNORE));
        }
        for (int i = 0; i < many; i++) {
            CHECK(first_wrong_byte(in[i], bytes_of(i), 1) < 0, "message %d", i);
            free(in[i]);
        }
    }
    free(requests);
    free(out);
    free(in);
    OK(MPI_Finalize());
    return 0;
}
