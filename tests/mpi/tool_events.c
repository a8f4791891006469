// Tests the events and performance variables of windows and persistent collectives (docs/tools.md): their contents, their receivers and
// their number.
#include "check.h"

enum { kMost = 64 };

/// An event that a callback has received.
static struct Heard {
    char name[32];
    uint64_t elements[4];
    MPI_Count when;
} heard[kMost];
static int count, ended, rank, size;

static void listen(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety, void* name) {
    (void)registration;
    CHECK(count < kMost, "there are more events than expected");
    struct Heard* const it = &heard[count++];
    uint64_t again[4] = {0};
    int source = -1, index = -1, elements = 4;
    EXPECT_INT(safety, MPI_T_CB_REQUIRE_NONE);
    snprintf(it->name, sizeof it->name, "%s", (const char*)name);
    OK(MPI_T_event_get_index(name, &index));
    MPI_Datatype types[4];
    MPI_Aint places[4];
    OK(MPI_T_event_get_info(index, NULL, NULL, NULL, types, places, &elements, NULL, NULL, NULL, NULL, NULL));
    OK(MPI_T_event_copy(instance, again));
    for (int i = 0; i < elements; i++) {
        CHECK(types[i] == MPI_UINT64_T && places[i] == 8 * i, "element %d of %s", i, it->name);
        OK(MPI_T_event_read(instance, i, &it->elements[i]));
        EXPECT_INT(again[i], it->elements[i]);
    }
    EXPECT_INT(MPI_T_event_read(instance, elements, again), MPI_T_ERR_INVALID_INDEX);
    OK(MPI_T_event_get_source(instance, &source));
    EXPECT_INT(source, 0);
    OK(MPI_T_event_get_timestamp(instance, &it->when));
    CHECK(count < 2 || it->when >= heard[count - 2].when, "timestamps decrease");
    // The callback has no safety restriction: it may call MPI.
    int answer = 0;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &answer));
    EXPECT_INT(answer, rank);
    OK(MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &answer, MPI_STATUS_IGNORE));
}

static void on_end(MPI_T_event_registration registration, MPI_T_cb_safety safety, void* data) {
    int flag;
    (void)registration, (void)safety;
    OK(MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    ++*(int*)data;
}

static MPI_T_event_registration start_listening(const char* name) {
    MPI_T_event_registration made;
    MPI_Info info;
    int index = -1;
    OK(MPI_T_event_get_index(name, &index));
    OK(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &made));
    OK(MPI_T_event_register_callback(made, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, (void*)name, listen));
    EXPECT_INT(MPI_T_event_register_callback(made, (MPI_T_cb_safety)1, MPI_INFO_NULL, NULL, listen), MPI_T_ERR_INVALID);
    OK(MPI_T_event_handle_get_info(made, &info));
    OK(MPI_Info_free(&info));
    return made;
}

/// Returns the next received event, which must have this name.
static const struct Heard* next(int* at, const char* name) {
    CHECK(*at < count && !strcmp(heard[*at].name, name), "%s, not %s", name, *at < count ? heard[*at].name : "nothing");
    return &heard[(*at)++];
}

static uint64_t value_of(const char* name) {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    int index = -1, variables = 0, kind = 0, continuous = 0;
    uint64_t value = 0;
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_T_pvar_get_num(&variables));
    for (int i = 0; i < variables && index < 0; i++) {
        char found[64];
        int length = sizeof found;
        OK(MPI_T_pvar_get_info(i, found, &length, NULL, &kind, NULL, NULL, NULL, NULL, NULL, NULL, &continuous, NULL));
        if (!strcmp(found, name)) index = i;
    }
    CHECK(index >= 0, "no performance variable %s", name);
    int elements = 0;
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &elements));
    EXPECT_INT(kind, MPI_T_PVAR_CLASS_LEVEL);
    OK(MPI_T_pvar_read(session, handle, &value));
    OK(MPI_T_pvar_handle_free(session, &handle));
    OK(MPI_T_pvar_session_free(&session));
    return value;
}

static void of_windows(int* at) {
    MPI_Win win;
    int* memory;
    OK(MPI_Win_allocate(8, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    const struct Heard* const made = next(at, "window_made");
    EXPECT_INT(made->elements[1], MPI_WIN_FLAVOR_ALLOCATE);
    EXPECT_INT(made->elements[2], 8);
    EXPECT_INT(made->elements[3], size);
    uint64_t same = made->elements[0];
    OK(MPI_Bcast(&same, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD));
    CHECK(same == made->elements[0], "a window has one number in all processes");
    EXPECT_INT(value_of("windows"), 1);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, win));
    const struct Heard* const locked = next(at, "window_locked");
    OK(MPI_Win_unlock(size - 1, win));
    EXPECT_INT(locked->elements[0], same);
    EXPECT_INT(locked->elements[1], size - 1);
    EXPECT_INT(locked->elements[2], 1);
    OK(MPI_Win_free(&win));
    EXPECT_INT(next(at, "window_freed")->elements[0], same);
    EXPECT_INT(value_of("windows"), 0);
}

static void of_plans(int* at) {
    MPI_Request requests[2];
    uint64_t numbers[2];
    for (int i = 0; i < 2; i++) {
        OK(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]));
        numbers[i] = next(at, "plan_made")->elements[1];
    }
    CHECK(numbers[0] != numbers[1], "each plan has its number");
    EXPECT_INT(value_of("plans"), 2);
    for (int i = 1; i >= 0; i--) {
        OK(MPI_Start(&requests[i]));
        EXPECT_INT(next(at, "plan_started")->elements[1], numbers[i]);
        OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&requests[i]));
        EXPECT_INT(next(at, "plan_freed")->elements[1], numbers[i]);
    }
    EXPECT_INT(value_of("plans"), 0);
}

static void of_categories(void) {
    const char* const names[] = {"windows", "plans"};
    for (int i = 0; i < 2; i++) {
        int category = -1, events = 0, indices[8];
        OK(MPI_T_category_get_index(names[i], &category));
        OK(MPI_T_category_get_num_events(category, &events));
        EXPECT_INT(events, 3);
        OK(MPI_T_category_get_events(category, 8, indices));
    }
}

int main(int argc, char** argv) {
    int provided, at = 0;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    // A callback may call MPI even at MPI_THREAD_MULTIPLE, where this takes the library's lock.
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    const char* const names[] = {"window_made", "window_freed", "window_locked", "plan_made", "plan_started", "plan_freed"};
    MPI_T_event_registration registrations[6];
    for (int i = 0; i < 6; i++) registrations[i] = start_listening(names[i]);
    of_windows(&at);
    of_plans(&at);
    EXPECT_INT(at, count);
    of_categories();
    for (int i = 0; i < 6; i++) OK(MPI_T_event_handle_free(registrations[i], &ended, on_end));
    EXPECT_INT(ended, 6);
    EXPECT_INT(MPI_T_event_handle_free(registrations[0], NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
    // All handles are freed: no callback may run.
    MPI_Win win;
    OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_free(&win));
    EXPECT_INT(at, count);
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return 0;
}
