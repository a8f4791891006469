// Tests the initial error handler (MPI 5.0 sections 9.3 and 11.8.4), which `mpiexec --initial-errhandler` chooses for each command, and the
// info key mpi_initial_errhandler for children. The argument names the handler that the process must have; "none": the default.
#include "dynamic.h"

static const struct {
    const char* name;
    MPI_Errhandler handler;
} kHandlers[] = {{"none", MPI_ERRORS_ARE_FATAL},
                 {"mpi_errors_are_fatal", MPI_ERRORS_ARE_FATAL},
                 {"mpi_errors_abort", MPI_ERRORS_ABORT},
                 {"mpi_errors_return", MPI_ERRORS_RETURN}};

static MPI_Errhandler wanted(const char* name) {
    for (unsigned i = 0; i < sizeof kHandlers / sizeof *kHandlers; i++)
        if (!strcmp(kHandlers[i].name, name)) return kHandlers[i].handler;
    fail_at(__FILE__, __LINE__, "the argument", "%s is not a handler", name);
}

static void check_info(MPI_Info info, const char* name) {
    char value[MPI_MAX_INFO_VAL] = "";
    int length = sizeof value, flag;
    OK(MPI_Info_get_string(info, "mpi_initial_errhandler", &length, value, &flag));
    EXPECT_INT(flag, strcmp(name, "none") != 0);
    CHECK(!flag || !strcmp(value, name), "the info has %s", value);
}

// A process with MPI_ERRORS_RETURN gets an error code where no communicator exists.
static void expect_errors_returned(const char* name) {
    int size;
    if (wanted(name) != MPI_ERRORS_RETURN) return;
    CHECK(MPI_Comm_size(MPI_COMM_NULL, &size) != MPI_SUCCESS);
    EXPECT_ERROR(MPI_Error_class(-5, &size), MPI_ERR_ARG);
}

// In a process that uses sessions only.
static void check_session(const char* name) {
    MPI_Session session;
    MPI_Errhandler handler;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
    OK(MPI_Session_get_errhandler(session, &handler));
    CHECK(handler == MPI_ERRORS_ARE_FATAL, "a session has its own handler");
    expect_errors_returned(name);
    OK(MPI_Session_finalize(&session));
}

static void check_objects(const char* name) {
    MPI_Errhandler handler;
    MPI_Comm copy;
    MPI_Comm comms[] = {MPI_COMM_WORLD, MPI_COMM_SELF, MPI_COMM_NULL};
    OK(MPI_Comm_get_parent(&comms[2]));
    for (int i = 0; i < 3; i++) {
        if (comms[i] == MPI_COMM_NULL) continue;
        OK(MPI_Comm_get_errhandler(comms[i], &handler));
        CHECK(handler == wanted(name), "communicator %d of a process with %s", i, name);
    }
    OK(MPI_Comm_dup(MPI_COMM_SELF, &copy));
    OK(MPI_Comm_get_errhandler(copy, &handler));
    CHECK(handler == wanted(name), "a communicator inherits the handler");
    OK(MPI_Comm_free(&copy));
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &handler));
    CHECK(handler == MPI_ERRORS_RETURN, "MPI_FILE_NULL keeps its handler");
    check_info(MPI_INFO_ENV, name);
}

// Spawns a child that expects `name`, with this value of the info key (null: without it).
static int spawn_child(const char* name, const char* value, MPI_Comm* inter) {
    char word[40], path[PATH_MAX];
    char *arguments[] = {word, NULL}, **both[] = {arguments, arguments}, *commands[] = {path, path};
    int counts[] = {1, 1};
    MPI_Info infos[2];
    snprintf(word, sizeof word, "%s", name);
    snprintf(path, sizeof path, "%s", own_path());
    OK(MPI_Info_create(&infos[0]));
    if (value) OK(MPI_Info_set(infos[0], "mpi_initial_errhandler", value));
    infos[1] = infos[0];
    int code = MPI_Comm_spawn_multiple(2, commands, both, counts, infos, 0, MPI_COMM_SELF, inter, MPI_ERRCODES_IGNORE);
    OK(MPI_Info_free(&infos[0]));
    return code;
}

static void check_children(void) {
    static const char* const values[][2] = {
        {"none", NULL}, {"mpi_errors_abort", "MPI_ERRORS_ABORT"}, {"mpi_errors_return", "mpi_errors_return"}};
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Comm inter;
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    for (int i = 0; i < 3; i++) {
        OK(spawn_child(values[i][0], values[i][1], &inter));
        OK(MPI_Barrier(inter));
        OK(MPI_Comm_disconnect(&inter));
    }
    int code = spawn_child("none", "mpi_errors_ignore", &inter);
    EXPECT_INT(class_of(code), MPI_ERR_SPAWN);
    OK(MPI_Error_string(code, text, &length));
    CHECK(strstr(text, "mpi_errors_ignore") && strstr(text, "mpi_errors_return"), "the text is %s", text);
}

/// MPI_Init and MPI_Session_init after MPI_Finalize return errors that say so and name the remedy.
static void check_second_start(void) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Session session;
    OK(MPI_Error_string(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session), text, &length));
    CHECK(strstr(text, "open an MPI session before MPI_Finalize"), "the text is %s", text);
    OK(MPI_Error_string(MPI_Init(NULL, NULL), text, &length));
    CHECK(strstr(text, "after MPI_Finalize"), "the text is %s", text);
}

int main(int argc, char** argv) {
    MPI_Info before;
    CHECK(argc == 2);
    const char* name = argv[1];
    expect_errors_returned(name);
    OK(MPI_Info_create_env(argc, argv, &before));
    check_info(before, name);
    OK(MPI_Info_free(&before));
    check_session(name);
    OK(MPI_Init(&argc, &argv));
    check_objects(name);
    if (was_met_as_child()) {
        expect_errors_returned(name);
        return 0;
    }
    int rank;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) check_children();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Finalize());
    expect_errors_returned(name);
    if (!strcmp(name, "mpi_errors_return")) check_second_start();
    if (rank == 0) puts("each process has its handler");
    return 0;
}
