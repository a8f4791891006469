// Ranks of the user root that become another user after MPI_Init. Windows either work, or their error names the cause and the remedy on the
// rank that cannot map its neighbour's memory. Other users than root cannot run this test, which then tests nothing.
#include <unistd.h>

#include "check.h"

int main(int argc, char** argv) {
    int rank, size, failed = 0, failures = 0, length;
    char text[MPI_MAX_ERROR_STRING] = "";
    void* memory;
    MPI_Win window;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    if (geteuid() == 0) CHECK(setgid(65534) == 0 && setuid(65534) == 0, "the process cannot become another user");
    const int code = MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    if (code) OK(MPI_Error_string(code, text, &length));
    if (code && strstr(text, "cannot be mapped")) {
        failed = 1;
        CHECK(strstr(text, "before MPI_Init"), "the text is %s", text);
    }
    OK(MPI_Allreduce(&failed, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(!code == !failures, "the result of MPI_Win_allocate is %d, but %d ranks cannot map memory", code, failures);
    if (!code) OK(MPI_Win_free(&window));
    OK(MPI_Finalize());
    return 0;
}
