// Error codes keep their sentences: each of two failed calls has its own, in any thread and later. The class of a code, codes in statuses
// and in spawn's array, codes that the program adds, and codes so old that their sentence is overwritten. With
// STARLING_ERROR_CODES=classes a code is the class itself.
#include <pthread.h>
#include <sys/resource.h>

#include "dynamic.h"

static int rank, size;

static const char* text_of(int code) {
    static _Thread_local char text[MPI_MAX_ERROR_STRING];
    int length = -1;
    OK(MPI_Error_string(code, text, &length));
    EXPECT_INT(length, strlen(text));
    return text;
}

static void expect(int code, int class, const char* words) {
    EXPECT_INT(class_of(code), class);
    CHECK(strstr(text_of(code), words), "the text of code %d is '%s', wanted '%s'", code, text_of(code), words);
}

static void* send_with_bad_tag(void* code) {
    int value = 0;
    *(int*)code = MPI_Send(&value, 1, MPI_INT, rank, -4711, MPI_COMM_WORLD);
    expect(*(int*)code, MPI_ERR_TAG, "MPI_Send: tag -4711");
    return NULL;
}

static void* expect_first(void* code) {
    expect(*(int*)code, MPI_ERR_RANK, "MPI_Ssend: there is no rank 90210 in a communicator");
    return NULL;
}

static void in_thread(void* (*function)(void*), int* code) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, function, code) == 0, "pthread_create");
    CHECK(pthread_join(thread, NULL) == 0, "pthread_join");
}

static void two_calls(void) {
    int value = 0, second;
    int first = MPI_Ssend(&value, 1, MPI_INT, 90210, 0, MPI_COMM_WORLD);
    const int same = MPI_Ssend(&value, 1, MPI_INT, 90211, 0, MPI_COMM_WORLD);
    in_thread(send_with_bad_tag, &second);
    expect(same, MPI_ERR_RANK, "no rank 90211");
    in_thread(expect_first, &first);
    expect(second, MPI_ERR_TAG, "tag -4711");
    expect(MPI_Ssend(&value, 1, MPI_INT, 1, 0, MPI_COMM_SELF), MPI_ERR_RANK,
           "there is no rank 1 in a communicator of 1 process");
    CHECK(!strstr(text_of(first), "of 1 processes") && (strstr(text_of(first), "mpiexec -n N") != NULL) == (size == 1),
          "the remedy is wrong: %s", text_of(first));
    CHECK(strncmp(text_of(first), "MPI_ERR_RANK: ", 14) == 0, "the text begins with the class: %s", text_of(first));
}

// The requests of one MPI_Waitall fail for different reasons.
static void statuses(void) {
    int small[2] = {0, 0}, large[4] = {1, 2, 3, 4};
    MPI_Request requests[3];
    MPI_Status got[3];
    for (int round = 0; round < 3; round++) {
        OK(MPI_Irecv(&small[0], 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Irecv(&small[1], 1, MPI_INT, rank, 2, MPI_COMM_WORLD, &requests[1]));
        OK(MPI_Irecv(&large[0], 4, MPI_INT, rank, 3, MPI_COMM_WORLD, &requests[2]));
        OK(MPI_Send(large, 2, MPI_INT, rank, 1, MPI_COMM_WORLD));
        OK(MPI_Send(large, 3, MPI_INT, rank, 2, MPI_COMM_WORLD));
        OK(MPI_Send(large, 4, MPI_INT, rank, 3, MPI_COMM_WORLD));
        if (round == 0) {
            EXPECT_INT(MPI_Waitall(3, requests, got), MPI_ERR_IN_STATUS);
            expect(got[0].MPI_ERROR, MPI_ERR_TRUNCATE, "MPI_Waitall: a message of 8 bytes");
            expect(got[1].MPI_ERROR, MPI_ERR_TRUNCATE, "MPI_Waitall: a message of 12 bytes");
            EXPECT_INT(got[2].MPI_ERROR, MPI_SUCCESS);
        } else if (round == 1) {
            MPI_Status* const none = MPI_STATUSES_IGNORE;  // GCC takes MPICH's constant for an array without room
            expect(MPI_Waitall(3, requests, none), MPI_ERR_TRUNCATE, "a message of 8 bytes");
        } else {
            expect(MPI_Wait(&requests[1], &got[0]), MPI_ERR_TRUNCATE, "MPI_Wait: a message of 12 bytes");
            expect(MPI_Wait(&requests[0], &got[0]), MPI_ERR_TRUNCATE, "MPI_Wait: a message of 8 bytes");
            OK(MPI_Wait(&requests[2], &got[0]));
        }
    }
}

// MPI_Request_get_status leaves the request's sentence to the calls that follow.
static void looked_at_twice(void) {
    int small = 0, large[2] = {1, 2}, flag = 0;
    MPI_Request request;
    OK(MPI_Irecv(&small, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &request));
    OK(MPI_Send(large, 2, MPI_INT, rank, 1, MPI_COMM_WORLD));
    int first = MPI_SUCCESS;
    while (!flag) first = MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    expect(first, MPI_ERR_TRUNCATE, "a message of 8 bytes");
    expect(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, "a message of 8 bytes");
    expect(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, "a message of 8 bytes");
}

static void spawns(void) {
    char nowhere[] = "/nowhere/is/this-program";
    MPI_Comm children;
    int codes[2] = {0, 0};
    const int code = MPI_Comm_spawn(nowhere, MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes);
    expect(code, MPI_ERR_SPAWN, nowhere);
    expect(code, MPI_ERR_SPAWN, "No such file or directory");
    for (int i = 0; i < 2; i++) expect(codes[i], MPI_ERR_SPAWN, nowhere);
    expect(MPI_Comm_connect("no port at all", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children), MPI_ERR_PORT, "no port at all");
}

static void windows(void) {
    MPI_Win win;
    int memory[4], value = 0;
    OK(MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    int code = MPI_Put(&value, 1, MPI_INT, rank, 4096, 1, MPI_INT, win);
    const int end = MPI_Win_unlock(rank, win);
    expect(code == MPI_SUCCESS ? end : code, MPI_ERR_RMA_RANGE, "16-byte window");
    OK(MPI_Win_free(&win));
    expect(MPI_Win_create(memory, -5, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_SIZE, "-5");
}

// Codes of the program are not among those with sentences, and MPI_LASTUSEDCODE counts only them.
static void added_codes(void) {
    int *last, found, class, code, value = 0;
    OK(MPI_Add_error_class(&class));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &found));
    const int before = *last;
    const int failed = MPI_Send(&value, 1, MPI_INT, -90210, 0, MPI_COMM_WORLD);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &found));
    EXPECT_INT(*last, before);
    for (int i = 0; i < 1000; i++) {
        OK(MPI_Add_error_code(class, &code));
        CHECK(code != failed && code == before + 1 + i, "added code %d", code);
    }
    OK(MPI_Add_error_string(code, "the kettle is empty"));
    EXPECT_INT(strcmp(text_of(code), "the kettle is empty"), 0);
    EXPECT_INT(class_of(code), class);
    expect(failed, MPI_ERR_RANK, "no rank -90210");
}

static int handled;
static void handler(MPI_Comm* comm, int* code, ...) {
    (void)comm;
    handled = *code;
    expect(*code, MPI_ERR_COUNT, "count -3");
}

static void handlers(void) {
    MPI_Errhandler mine;
    MPI_Comm comm;
    int value = 0;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_create_errhandler(handler, &mine));
    OK(MPI_Comm_set_errhandler(comm, mine));
    const int code = MPI_Send(&value, -3, MPI_INT, 0, 0, comm);
    EXPECT_INT(handled, code);
    handled = 0;
    OK(MPI_Comm_call_errhandler(comm, code));  // the code keeps its sentence when it is raised again
    EXPECT_INT(handled, code);
    OK(MPI_Errhandler_free(&mine));
    OK(MPI_Comm_free(&comm));
}

static int refuse(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
    (void)comm, (void)key, (void)extra, (void)in, (void)out;
    *flag = 0;
    return MPI_ERR_DIMS;
}

// A callback's code is the program's, and is returned as it is.
static void callbacks(void) {
    MPI_Comm comm, copy;
    int key;
    OK(MPI_Comm_create_keyval(refuse, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_set_attr(comm, key, NULL));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    EXPECT_INT(class_of(MPI_Comm_dup(comm, &copy)), MPI_ERR_DIMS);
    OK(MPI_Comm_delete_attr(comm, key));
    OK(MPI_Comm_free_keyval(&key));
    OK(MPI_Comm_free(&comm));
}

// The memory for sentences is bounded: an old code has the text of its class.
static void many_failures(void) {
    int value = 0, code = MPI_SUCCESS;
    const int old = MPI_Send(&value, 1, MPI_INT, 90210, 0, MPI_COMM_WORLD);
    expect(old, MPI_ERR_RANK, "90210");
    for (int i = 0; i < 100000; i++) code = MPI_Send(&value, 1, MPI_INT, 100000 + i, 0, MPI_COMM_WORLD);
    expect(code, MPI_ERR_RANK, "no rank 199999");
    EXPECT_INT(class_of(old), MPI_ERR_RANK);
    CHECK(strcmp(text_of(old), "MPI_ERR_RANK: Invalid rank") == 0, "%s", text_of(old));
}

static void never_returned(void) {
    char text[MPI_MAX_ERROR_STRING];
    int class, length;
    EXPECT_ERROR(MPI_Error_class(0x2fffff86, &class), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Error_string(0x2fffff86, text, &length), MPI_ERR_ARG);
}

static void only_classes(void) {
    int value = 0, codes[2] = {0, 0};
    char nowhere[] = "/nowhere/is/this-program";
    MPI_Comm children;
    EXPECT_INT(MPI_Send(&value, 1, MPI_INT, 90210, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
    EXPECT_INT(MPI_Comm_spawn(nowhere, MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes), MPI_ERR_SPAWN);
    EXPECT_INT(codes[1], MPI_ERR_SPAWN);
}

// A window's memory is a file, so limits of files and of descriptors apply. The text names the limit, on every rank.
static void limits_of_windows(int shared) {
    MPI_Comm host;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    OK(MPI_Comm_set_errhandler(host, MPI_ERRORS_RETURN));
    const struct {
        int resource;
        rlim_t limit;
        const char* remedy;
    } limits[] = {{RLIMIT_FSIZE, 4096, "`ulimit -f`"}, {RLIMIT_NOFILE, 3, "`ulimit -n`"}};
    for (int i = 0; i < 2; i++) {
        struct rlimit before, low;
        CHECK(getrlimit(limits[i].resource, &before) == 0, "getrlimit");
        low = before;
        low.rlim_cur = limits[i].limit;
        OK(MPI_Barrier(MPI_COMM_WORLD));
        CHECK(setrlimit(limits[i].resource, &low) == 0, "setrlimit");
        long* memory = NULL;
        MPI_Win window = MPI_WIN_NULL;
        const int code = shared ? MPI_Win_allocate_shared(1 << 20, 1, MPI_INFO_NULL, host, &memory, &window)
                                : MPI_Win_allocate(1 << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
        CHECK(setrlimit(limits[i].resource, &before) == 0, "setrlimit");
        expect(code, MPI_ERR_NO_MEM, shared ? "bytes of the shared window: " : "rank 0 cannot allocate its part of the window");
        expect(code, MPI_ERR_NO_MEM, limits[i].remedy);
    }
    OK(MPI_Comm_free(&host));
}

int main(int argc, char** argv) {
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    const char* codes = getenv("STARLING_ERROR_CODES");
    if (codes && strcmp(codes, "classes") == 0) {
        only_classes();
    } else {
        never_returned();
        limits_of_windows(0);
        void* block;
        OK(MPI_Alloc_mem(4096, MPI_INFO_NULL, &block));  // creates the memory in which rank 0 keeps the window's lock table
        limits_of_windows(1);
        OK(MPI_Free_mem(block));
        two_calls();
        statuses();
        looked_at_twice();
        spawns();
        windows();
        added_codes();
        handlers();
        callbacks();
        many_failures();
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    return 0;
}
