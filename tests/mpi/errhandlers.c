// Tests error handlers: user functions on communicators, inheritance, errors raised by call, user-defined error classes, codes and strings,
// MPI_ERRORS_RETURN, and the handler for errors without a communicator.
#include "check.h"

static int calls, last_code;
static MPI_Comm last_comm;

static void handler(MPI_Comm* comm, int* code, ...) {
    calls++;
    last_code = *code;
    last_comm = *comm;
}

static int other_calls;
static void other_handler(MPI_Comm* comm, int* code, ...) {
    (void)comm, (void)code;
    other_calls++;
}

int main(int argc, char** argv) {
    int rank, size, class, code, length, flag;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Errhandler errhandler, other, got;
    MPI_Comm comm, dup;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got));
    CHECK(got == MPI_ERRORS_ARE_FATAL, "the default handler");
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_create_errhandler(handler, &errhandler));
    OK(MPI_Comm_set_errhandler(comm, errhandler));
    OK(MPI_Comm_get_errhandler(comm, &got));
    CHECK(got == errhandler);
    OK(MPI_Errhandler_free(&got));

    code = MPI_Send(&rank, 1, MPI_INT, size, 0, comm);
    EXPECT_INT(calls, 1);
    EXPECT_INT(last_code, code);
    CHECK(last_comm == comm, "the handler got another communicator");
    OK(MPI_Error_class(code, &class));
    EXPECT_INT(class, MPI_ERR_RANK);

    // A duplicate inherits the handler, which stays valid after it is freed.
    OK(MPI_Comm_dup(comm, &dup));
    OK(MPI_Errhandler_free(&errhandler));
    CHECK(errhandler == MPI_ERRHANDLER_NULL);
    code = MPI_Recv(&rank, -1, MPI_INT, 0, 0, dup, MPI_STATUS_IGNORE);
    EXPECT_INT(calls, 2);
    CHECK(last_comm == dup);
    OK(MPI_Error_class(code, &class));
    EXPECT_INT(class, MPI_ERR_COUNT);
    OK(MPI_Comm_call_errhandler(dup, MPI_ERR_OTHER));
    EXPECT_INT(calls, 3);
    EXPECT_INT(last_code, MPI_ERR_OTHER);

    OK(MPI_Comm_create_errhandler(other_handler, &other));
    OK(MPI_Comm_set_errhandler(dup, other));
    MPI_Send(&rank, 1, MPI_INT, -55, 0, dup);
    EXPECT_INT(other_calls, 1);
    EXPECT_INT(calls, 3);
    OK(MPI_Errhandler_free(&other));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    EXPECT_ERROR(MPI_Send(&rank, 1, MPI_INT, size, 0, comm), MPI_ERR_RANK);
    EXPECT_INT(calls, 3);
    OK(MPI_Comm_free(&comm));

    // Tests user-defined error classes, codes and strings.
    int* last_used;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last_used, &flag));
    CHECK(flag && *last_used >= MPI_ERR_LASTCODE);
    OK(MPI_Add_error_class(&class));
    CHECK(class > MPI_ERR_LASTCODE, "class %d", class);
    OK(MPI_Add_error_code(class, &code));
    OK(MPI_Add_error_string(code, "the kettle is empty"));
    OK(MPI_Error_string(code, text, &length));
    CHECK(strcmp(text, "the kettle is empty") == 0 && length == 19, "%s", text);
    int of;
    OK(MPI_Error_class(code, &of));
    EXPECT_INT(of, class);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last_used, &flag));
    CHECK(flag && *last_used >= code, "MPI_LASTUSEDCODE %d, code %d", *last_used, code);
    for (class = 0; class <= MPI_ERR_OTHER; class ++) {
        OK(MPI_Error_string(class, text, &length));
        CHECK(length > 0 && length < MPI_MAX_ERROR_STRING && (int)strlen(text) == length, "class %d", class);
    }
    OK(MPI_Finalize());
    return 0;
}
