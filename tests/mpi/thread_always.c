// Tests the functions that MPI 5.0 section 11.4.1 requires at all times, called by several threads: before MPI_Init, at any thread
// level, and after MPI_Finalize.
#include <pthread.h>

#include "check.h"

#define THREADS 4
#define ROUNDS 20000

static void on_error(MPI_Session* session, int* code, ...) {
    (void)session;
    (void)code;
}

static void use_infos(int me, MPI_Info shared) {
    MPI_Info info, copy;
    char key[20], value[40];
    int flag, length = sizeof value;
    snprintf(key, sizeof key, "key %d", me);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, key, "a value of more than fifteen letters"));
    OK(MPI_Info_dup(info, &copy));
    OK(MPI_Info_free(&info));
    OK(MPI_Info_get_string(copy, key, &length, value, &flag));
    CHECK(flag && !strcmp(value, "a value of more than fifteen letters"), "%s is %s", key, value);
    OK(MPI_Info_delete(copy, key));
    OK(MPI_Info_free(&copy));
    OK(MPI_Info_set(shared, key, "another value, which is long as well"));
    OK(MPI_Info_get_nkeys(shared, &length));
    CHECK(length >= 1 && length <= THREADS, "%d keys", length);
    OK(MPI_Info_create_env(0, NULL, &info));
    OK(MPI_Info_free(&info));
}

static void use_errors(void) {
    MPI_Errhandler handler;
    char text[MPI_MAX_ERROR_STRING];
    int class, code, length, its_class;
    OK(MPI_Session_create_errhandler(on_error, &handler));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Error_string(MPI_ERR_TRUNCATE, text, &length));
    OK(MPI_Add_error_class(&class));
    OK(MPI_Add_error_code(class, &code));
    OK(MPI_Add_error_string(code, "a text of the program's own, of some length"));
    OK(MPI_Error_string(code, text, &length));
    CHECK(!strcmp(text, "a text of the program's own, of some length"), "it is %s", text);
    OK(MPI_Error_class(code, &its_class));
    EXPECT_INT(its_class, class);
    OK(MPI_Remove_error_string(code));
    OK(MPI_Remove_error_code(code));
    OK(MPI_Remove_error_class(class));
}

static MPI_Info shared_info;

static void* work(void* number) {
    for (int i = 0; i < ROUNDS; i++) {
        use_infos((int)(intptr_t)number, shared_info);
        if (i % 8 == 0) use_errors();
    }
    return NULL;
}

static void all_at_once(void) {
    pthread_t threads[THREADS];
    OK(MPI_Info_create(&shared_info));
    for (intptr_t i = 0; i < THREADS; i++) CHECK(!pthread_create(&threads[i], NULL, work, (void*)i));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    OK(MPI_Info_free(&shared_info));
}

int main(int argc, char** argv) {
    int level;
    all_at_once();
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level));
    all_at_once();
    OK(MPI_Finalize());
    all_at_once();
    return 0;
}
