// Tests the tool interface (MPI 5.0 chapter 15): the parts required of any MPI, and with Starling the contents of its variables. Runs
// before MPI_Init, between MPI_Init and MPI_Finalize, and after.
#include <pthread.h>

#include "check.h"

static int starling;  ///< whether this is Starling, whose variables are known

// Strings are cut to the caller's buffer, and their full length is returned.
static void test_strings(void) {
    int length = 0, again = 4;
    char name[256] = "untouched", start[4];
    OK(MPI_T_cvar_get_info(0, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(length > 1 && !strcmp(name, "untouched"), "a length of 0 must only return the length, got %d and %s", length, name);
    const int whole = length;
    length = sizeof name;
    OK(MPI_T_cvar_get_info(0, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    EXPECT_INT(length, whole);
    EXPECT_INT(strlen(name) + 1, whole);
    memset(start, 'x', sizeof start);
    OK(MPI_T_cvar_get_info(0, start, &again, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    if (starling) EXPECT_INT(again, whole);  // other libraries return the written length
    CHECK(start[3] == 0 && !strncmp(start, name, 3), "cut to 3 characters and the end");
    OK(MPI_T_cvar_get_info(0, NULL, &again, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    EXPECT_INT(again, whole);
}

static void test_enum(MPI_T_enum enumtype) {
    int count = 0, value = -1, length = 100;
    char name[100];
    OK(MPI_T_enum_get_info(enumtype, &count, name, &length));
    CHECK(count > 0 && length > 1, "an enumeration must have items and a name, got %d", count);
    for (int i = 0; i < count; i++) {
        length = sizeof name;
        OK(MPI_T_enum_get_item(enumtype, i, &value, name, &length));
        CHECK(length > 1, "item %d has a name", i);
    }
    EXPECT_INT(MPI_T_enum_get_item(enumtype, count, &value, name, &length), MPI_T_ERR_INVALID_INDEX);
    EXPECT_INT(MPI_T_enum_get_item(enumtype, -1, &value, name, &length), MPI_T_ERR_INVALID_INDEX);
}

// Every control variable can be read; its index is found by its name; its datatype is an allowed one.
static void test_all_cvars(void) {
    int count = 0;
    OK(MPI_T_cvar_get_num(&count));
    for (int i = 0; i < count; i++) {
        char name[256], text[64 << 10];
        int name_length = sizeof name, verbosity = -1, bind = -1, scope = -1, found = -1, elements = 0;
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_T_enum enumtype = MPI_T_ENUM_NULL;
        OK(MPI_T_cvar_get_info(i, name, &name_length, &verbosity, &type, &enumtype, NULL, NULL, &bind, &scope));
        OK(MPI_T_cvar_get_index(name, &found));
        EXPECT_INT(found, i);
        CHECK(verbosity >= MPI_T_VERBOSITY_USER_BASIC && verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL, "of %s", name);
        CHECK(type == MPI_INT || type == MPI_UNSIGNED || type == MPI_UNSIGNED_LONG || type == MPI_UNSIGNED_LONG_LONG ||
                  type == MPI_COUNT || type == MPI_CHAR || type == MPI_DOUBLE,
              "type of %s", name);
        CHECK(scope >= MPI_T_SCOPE_CONSTANT && scope <= MPI_T_SCOPE_ALL_EQ, "scope of %s", name);
        if (enumtype != MPI_T_ENUM_NULL) test_enum(enumtype);
        if (bind != MPI_T_BIND_NO_OBJECT) continue;
        MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
        OK(MPI_T_cvar_handle_alloc(i, NULL, &handle, &elements));
        CHECK(elements > 0 && elements <= (int)sizeof text / 8, "%s has %d elements", name, elements);
        OK(MPI_T_cvar_read(handle, text));
        OK(MPI_T_cvar_handle_free(&handle));
        CHECK(handle == MPI_T_CVAR_HANDLE_NULL, "a freed handle is null");
        EXPECT_INT(MPI_T_cvar_handle_free(&handle), MPI_T_ERR_INVALID_HANDLE);
    }
    int found = 0;
    EXPECT_INT(MPI_T_cvar_get_index("no such variable", &found), MPI_T_ERR_INVALID_NAME);
    EXPECT_INT(MPI_T_cvar_get_info(count, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    EXPECT_INT(MPI_T_cvar_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
}

static MPI_T_cvar_handle cvar(const char* name) {
    int index = -1, count = 0;
    MPI_T_cvar_handle handle;
    OK(MPI_T_cvar_get_index(name, &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    return handle;
}

static long long number_in(const char* name) {
    long long value = -1;
    MPI_T_cvar_handle handle = cvar(name);
    OK(MPI_T_cvar_read(handle, &value));
    OK(MPI_T_cvar_handle_free(&handle));
    return value;
}

static int write_number(const char* name, long long value) {
    MPI_T_cvar_handle handle = cvar(name);
    const int code = MPI_T_cvar_write(handle, &value);
    OK(MPI_T_cvar_handle_free(&handle));
    return code;
}

static int write_item(const char* name, int value) {
    MPI_T_cvar_handle handle = cvar(name);
    const int code = MPI_T_cvar_write(handle, &value);
    OK(MPI_T_cvar_handle_free(&handle));
    return code;
}

static int write_text(const char* name, const char* value) {
    MPI_T_cvar_handle handle = cvar(name);
    const int code = MPI_T_cvar_write(handle, value);
    OK(MPI_T_cvar_handle_free(&handle));
    return code;
}

// Sets variables that can be set only before MPI_Init and must keep their values.
static void set_before(void) {
    if (!starling) return;
    OK(write_number("STARLING_DIRECT_THRESHOLD", 5));
    OK(write_item("STARLING_WAIT", 1));
    EXPECT_INT(write_item("STARLING_WAIT", 3), MPI_T_ERR_INVALID);
    EXPECT_INT(write_item("STARLING_WAIT", -1), MPI_T_ERR_INVALID);
    OK(write_text("STARLING_COLL_BARRIER", "dissemination"));
    char text[1024] = "";
    MPI_T_cvar_handle handle = cvar("STARLING_COLL_BARRIER");
    OK(MPI_T_cvar_read(handle, text));
    OK(MPI_T_cvar_handle_free(&handle));
    CHECK(!strcmp(text, "dissemination"), "got %s", text);
    EXPECT_INT(write_text("STARLING_CONFIG", "/dev/null"), MPI_T_ERR_CVAR_SET_NEVER);
}

static void set_while_running(void) {
    if (!starling) return;
    EXPECT_INT(number_in("STARLING_DIRECT_THRESHOLD"), 5);  // MPI_Init has kept the value
    OK(write_number("STARLING_EAGER_LIMIT", 4096));
    EXPECT_INT(number_in("STARLING_EAGER_LIMIT"), 4096);
    EXPECT_INT(write_number("STARLING_EAGER_LIMIT", -1), MPI_T_ERR_INVALID);
    EXPECT_INT(write_number("STARLING_EAGER_LIMIT", 1ll << 40), MPI_T_ERR_INVALID);
    EXPECT_INT(number_in("STARLING_EAGER_LIMIT"), 4096);
    EXPECT_INT(write_item("STARLING_WAIT", 1), MPI_T_ERR_CVAR_SET_NOT_NOW);
}

static void test_all_pvars(void) {
    int count = 0;
    OK(MPI_T_pvar_get_num(&count));
    MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
    OK(MPI_T_pvar_session_create(&session));
    for (int i = 0; i < count; i++) {
        char name[256];
        int length = sizeof name, class = -1, readonly = -1, continuous = -1, atomic = -1, found = -1, elements = 0, bind = -1;
        MPI_Datatype type;
        unsigned long long value[64] = {0};
        OK(MPI_T_pvar_get_info(i, name, &length, NULL, &class, &type, NULL, NULL, NULL, &bind, &readonly, &continuous,
                               &atomic));
        OK(MPI_T_pvar_get_index(name, class, &found));
        EXPECT_INT(found, i);
        EXPECT_INT(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_STATE, &found), MPI_T_ERR_INVALID_NAME);
        if (bind != MPI_T_BIND_NO_OBJECT || !starling) continue;
        MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
        OK(MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &elements));
        EXPECT_INT(elements, 1);
        OK(MPI_T_pvar_read(session, handle, value));
        EXPECT_INT(MPI_T_pvar_start(session, handle), continuous ? MPI_T_ERR_PVAR_NO_STARTSTOP : MPI_SUCCESS);
        EXPECT_INT(MPI_T_pvar_stop(session, handle), continuous ? MPI_T_ERR_PVAR_NO_STARTSTOP : MPI_SUCCESS);
        EXPECT_INT(MPI_T_pvar_reset(session, handle), readonly ? MPI_T_ERR_PVAR_NO_WRITE : MPI_SUCCESS);
        EXPECT_INT(MPI_T_pvar_write(session, handle, value), readonly ? MPI_T_ERR_PVAR_NO_WRITE : MPI_SUCCESS);
        EXPECT_INT(MPI_T_pvar_readreset(session, handle, value), atomic ? MPI_SUCCESS : MPI_T_ERR_PVAR_NO_ATOMIC);
        EXPECT_INT(MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, value), MPI_T_ERR_INVALID_HANDLE);
        if (i % 2) OK(MPI_T_pvar_handle_free(session, &handle));  // freeing the session frees the other handles
    }
    OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    OK(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES));
    OK(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    OK(MPI_T_pvar_session_free(&session));
    CHECK(session == MPI_T_PVAR_SESSION_NULL, "a freed session is null");
    EXPECT_INT(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES), MPI_T_ERR_INVALID_SESSION);
}

enum { kPaths = 6 };
struct Watch {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle paths[kPaths];
};

static MPI_T_pvar_handle watch_one(MPI_T_pvar_session session, const char* name) {
    int index = -1, count = 0;
    MPI_T_pvar_handle handle;
    OK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    return handle;
}

static struct Watch watch(void) {
    struct Watch new;
    OK(MPI_T_pvar_session_create(&new.session));
    const char* const names[kPaths] = {"messages_ring", "messages_inbox", "messages_udp",
                                       "messages_tcp",  "messages_verbs", "messages_rc"};
    for (int i = 0; i < kPaths; i++) new.paths[i] = watch_one(new.session, names[i]);
    return new;
}

static long long sent(const struct Watch* by) {
    unsigned long long sum = 0;
    for (int i = 0; i < kPaths; i++) {
        unsigned long long on_path = 0;
        OK(MPI_T_pvar_read(by->session, by->paths[i], &on_path));
        sum += on_path;
    }
    return (long long)sum;
}

static void exchange(int rounds) {
    int rank, size, word = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < rounds; i++)
        OK(MPI_Sendrecv_replace(&word, 1, MPI_INT, (rank + 1) % size, 1, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
                                MPI_STATUS_IGNORE));
}

// A handle counts only while it is started, whatever other sessions do.
static void test_counting(void) {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!starling || size == 1) return;
    struct Watch first = watch(), second = watch();
    exchange(3);
    EXPECT_INT(sent(&first), 0);
    OK(MPI_T_pvar_start(first.session, MPI_T_PVAR_ALL_HANDLES));
    exchange(20);
    OK(MPI_T_pvar_start(second.session, MPI_T_PVAR_ALL_HANDLES));
    exchange(20);
    OK(MPI_T_pvar_stop(second.session, MPI_T_PVAR_ALL_HANDLES));
    const long long of_second = sent(&second);
    exchange(20);
    const long long of_first = sent(&first);
    // Opening and closing a connection takes some additional packets.
    CHECK(of_first >= 60 && of_first < 70, "60 messages and a few more were sent, counted %lld", of_first);
    CHECK(of_second >= 20 && of_second < 30, "20 messages and a few more were sent, counted %lld", of_second);
    EXPECT_INT(sent(&second), of_second);
    OK(MPI_T_pvar_reset(first.session, MPI_T_PVAR_ALL_HANDLES));
    EXPECT_INT(sent(&first), 0);
    EXPECT_INT(sent(&second), of_second);
    unsigned long long value = 1000;
    OK(MPI_T_pvar_write(first.session, first.paths[0], &value));
    OK(MPI_T_pvar_readreset(first.session, first.paths[0], &value));
    EXPECT_INT(value, 1000);
    EXPECT_INT(MPI_T_pvar_start(second.session, first.paths[0]), MPI_T_ERR_INVALID_HANDLE);
    OK(MPI_T_pvar_session_free(&first.session));
    OK(MPI_T_pvar_session_free(&second.session));
}

static void ignore(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety, void* unused) {
    (void)instance, (void)registration, (void)safety, (void)unused;
}

// Sets variables that may be set at any time, and registers for an event.
static void change(int round) {
    int index = -1;
    MPI_T_event_registration made;
    if (!starling) return;
    OK(write_number("STARLING_EAGER_LIMIT", round % 2 ? 4096 : 0));
    OK(write_item("STARLING_SINGLE_COPY", round % 3));
    OK(MPI_T_event_get_index("plan_started", &index));
    OK(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &made));
    OK(MPI_T_event_register_callback(made, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, ignore));
    OK(MPI_T_event_handle_free(made, NULL, NULL));
}

// Runs in a tool's thread while the program, which is single-threaded for MPI, sends: reads and changes all variables.
static void* read_and_change_all(void* unused) {
    (void)unused;
    for (int i = 0; i < 50; i++) {
        test_all_pvars();
        test_all_cvars();
        change(i);
    }
    return NULL;
}

static void test_thread(void) {
    pthread_t thread;
    MPI_Request barrier;
    OK(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &barrier));
    CHECK(pthread_create(&thread, NULL, read_and_change_all, NULL) == 0, "no thread could be started");
    for (int i = 0; i < 100; i++) {
        exchange(20);
        OK(MPI_Start(&barrier));
        OK(MPI_Wait(&barrier, MPI_STATUS_IGNORE));
    }
    pthread_join(thread, NULL);
    OK(MPI_Request_free(&barrier));
}

static void test_categories(void) {
    int count = 0, cvars = 0, pvars = 0, all_cvars = 0, all_pvars = 0, stamp = -1, again = -2;
    OK(MPI_T_category_changed(&stamp));
    OK(MPI_T_category_get_num(&count));
    OK(MPI_T_cvar_get_num(&all_cvars));
    OK(MPI_T_pvar_get_num(&all_pvars));
    for (int i = 0; i < count; i++) {
        char name[256];
        int length = sizeof name, c = 0, p = 0, k = 0, found = -1, events = -1;
        OK(MPI_T_category_get_info(i, name, &length, NULL, NULL, &c, &p, &k));
        OK(MPI_T_category_get_index(name, &found));
        EXPECT_INT(found, i);
        OK(MPI_T_category_get_num_events(i, &events));
        int* indices = malloc(sizeof(int) * (size_t)(c + p + k + 1));
        OK(MPI_T_category_get_cvars(i, c, indices));
        for (int j = 0; j < c; j++) CHECK(indices[j] >= 0 && indices[j] < all_cvars, "%d of %s", indices[j], name);
        OK(MPI_T_category_get_pvars(i, p, indices));
        for (int j = 0; j < p; j++) CHECK(indices[j] >= 0 && indices[j] < all_pvars, "%d of %s", indices[j], name);
        OK(MPI_T_category_get_categories(i, k, indices));
        for (int j = 0; j < k; j++) CHECK(indices[j] > 0 && indices[j] < count, "%d of %s", indices[j], name);
        free(indices);
        cvars += c;
        pvars += p;
    }
    if (starling) {
        EXPECT_INT(cvars, all_cvars);
        EXPECT_INT(pvars, all_pvars);
    }
    int nothing = 0;
    EXPECT_INT(MPI_T_category_get_info(count, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    EXPECT_INT(MPI_T_category_get_index("no such category", &nothing), MPI_T_ERR_INVALID_NAME);
    OK(MPI_T_category_changed(&again));
    EXPECT_INT(again, stamp);
}

static void test_events(void) {
    int events = -1, sources = -1, found = 0;
    OK(MPI_T_event_get_num(&events));
    EXPECT_INT(MPI_T_event_get_index("no such event", &found), MPI_T_ERR_INVALID_NAME);
    EXPECT_INT(MPI_T_event_get_info(events, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
               MPI_T_ERR_INVALID_INDEX);
    OK(MPI_T_source_get_num(&sources));
    for (int i = 0; i < sources; i++) {
        MPI_Count ticks = 0, most = 0, first = 0, second = 0;
        MPI_T_source_order order = MPI_T_SOURCE_UNORDERED;
        char name[256];
        int length = sizeof name;
        OK(MPI_T_source_get_info(i, name, &length, NULL, NULL, &order, &ticks, &most, NULL));
        OK(MPI_T_source_get_timestamp(i, &first));
        OK(MPI_T_source_get_timestamp(i, &second));
        CHECK(ticks > 0 && most > 0, "of source %s", name);
        CHECK(order == MPI_T_SOURCE_UNORDERED || second >= first, "timestamps decrease");
    }
    MPI_Count stamp = 0;
    EXPECT_INT(MPI_T_source_get_timestamp(sources, &stamp), MPI_T_ERR_INVALID_INDEX);
}

static void test_everything(void) {
    test_strings();
    test_all_cvars();
    test_all_pvars();
    test_categories();
    test_events();
}

int main(int argc, char** argv) {
    int provided = -1, count = 0, length = 0;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    OK(MPI_Get_library_version(version, &length));
    starling = !strncmp(version, "Starling", 8);

    EXPECT_INT(MPI_T_cvar_get_num(&count), MPI_T_ERR_NOT_INITIALIZED);
    EXPECT_INT(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided >= MPI_THREAD_SINGLE && provided <= MPI_THREAD_MULTIPLE, "got %d", provided);
    test_everything();
    set_before();

    OK(MPI_Init(&argc, &argv));
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));  // the tool interface is initialized by a second tool
    set_while_running();
    test_everything();
    test_counting();
    if (provided == MPI_THREAD_MULTIPLE) test_thread();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_T_finalize());
    OK(MPI_Finalize());

    test_everything();
    OK(MPI_T_finalize());
    EXPECT_INT(MPI_T_pvar_get_num(&count), MPI_T_ERR_NOT_INITIALIZED);
    return 0;
}
