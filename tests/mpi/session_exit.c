// A program closes its last MPI session and exits. While a slow exit handler runs after the library's exit handlers, no thread of the
// library may be left. The slow handler was registered before any library started, so it is called last.
#define _DEFAULT_SOURCE
#include <unistd.h>

#include "check.h"

static void slowly(int code, void* unused) {
    (void)code, (void)unused;
    usleep(300000);
}
static void before_libraries(void) { on_exit(slowly, NULL); }
__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = before_libraries;

int main(void) {
    MPI_Session session;
    for (int i = 0; i < 3; i++) {
        MPI_Group group;
        MPI_Comm comm;
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
        OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
        OK(MPI_Comm_create_from_group(group, "exit", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
        OK(MPI_Barrier(comm));
        OK(MPI_Comm_free(&comm));
        OK(MPI_Group_free(&group));
        OK(MPI_Session_finalize(&session));
    }
    return 0;
}
