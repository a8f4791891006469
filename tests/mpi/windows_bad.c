// Bad input to windows: arguments that are wrong on one process only, which all processes must report; mismatched calls; freed windows;
// wrong epochs, locks, displacements and attached memory. Each returns its error class, and no process hangs or dies.
#include "check.h"

static int rank, size, several_hosts;

/// Rank 0's arguments are wrong, the others' are valid.
static void wrong_at_one(void) {
    static int memory[4];
    MPI_Win win = MPI_WIN_NULL;
    MPI_Info gone;
    void* base;
    const int wrong = rank == 0;
    EXPECT_ERROR(MPI_Win_create(memory, wrong ? -1 : 16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_SIZE);
    EXPECT_ERROR(MPI_Win_create(memory, 16, wrong ? 0 : 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_DISP);
    EXPECT_ERROR(MPI_Win_create(memory, 16, wrong ? -4 : 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_DISP);
    EXPECT_ERROR(MPI_Win_create(wrong ? NULL : memory, 16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_BASE);
    EXPECT_ERROR(MPI_Win_create(memory, 16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, wrong ? NULL : &win), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Win_allocate(wrong ? -1 : 16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_SIZE);
    EXPECT_ERROR(MPI_Win_allocate(16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, wrong ? NULL : &base, &win), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Win_allocate_shared(16, wrong ? 0 : 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_DISP);
    OK(MPI_Info_create(&gone));
    const MPI_Info freed = gone;
    OK(MPI_Info_free(&gone));
    EXPECT_ERROR(MPI_Win_create_dynamic(wrong ? freed : MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_INFO);
    CHECK(win == MPI_WIN_NULL, "a window was made");
    // All others report the error of the lowest rank.
    int code = MPI_Win_create(memory, rank == 0 ? -1 : 16, rank == 1 ? 0 : 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    EXPECT_INT(class_of(code), rank == 1 ? MPI_ERR_DISP : MPI_ERR_SIZE);
}

/// Members make different collective calls on one communicator: each must return an error.
static void mismatched(void) {
    static int memory[4];
    MPI_Win win = MPI_WIN_NULL;
    void* base;
    int code = rank == 0 ? MPI_Win_create(memory, 16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win)
                         : MPI_Win_allocate(16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    EXPECT_INT(class_of(code), size == 1 ? MPI_SUCCESS : MPI_ERR_RMA_FLAVOR);
    if (size == 1) OK(MPI_Win_free(&win));
    code = rank == 0 ? MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win)
                     : MPI_Win_create(memory, 16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    EXPECT_INT(class_of(code), size == 1 ? MPI_SUCCESS : MPI_ERR_RMA_FLAVOR);
    if (size == 1) OK(MPI_Win_free(&win));
    // One of two processes fences a window that the other frees: both return an error.
    MPI_Comm pair;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair));
    int pair_rank, pair_size;
    OK(MPI_Comm_rank(pair, &pair_rank));
    OK(MPI_Comm_size(pair, &pair_size));
    OK(MPI_Comm_set_errhandler(pair, MPI_ERRORS_RETURN));
    if (pair_size == 2) {
        OK(MPI_Win_create(memory, 16, 4, MPI_INFO_NULL, pair, &win));
        OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
        if (pair_rank == 0) {
            EXPECT_ERROR(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
        } else {
            EXPECT_ERROR(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Comm_free(&pair));
}

static void shared_over_hosts(void) {
    MPI_Win win = MPI_WIN_NULL;
    void* base;
    const int code = MPI_Win_allocate_shared(16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    EXPECT_INT(class_of(code), several_hosts ? MPI_ERR_RMA_SHARED : MPI_SUCCESS);
    if (several_hosts) return;
    OK(MPI_Win_free(&win));
    // The sum of the parts overflows: four of them would sum up to 0 bytes.
    const int big = MPI_Win_allocate_shared((MPI_Aint)1 << 62, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    EXPECT_INT(class_of(big), size == 1 ? MPI_ERR_NO_MEM : MPI_ERR_SIZE);
}

/// MPI_NO_OP is only for functions that return data (MPI 5.0 section 12.3.4), also after a function that may use it.
static void no_operation(void) {
    int *memory, one = 1, old;
    MPI_Win win;
    MPI_Request request;
    OK(MPI_Win_allocate(16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Fetch_and_op(NULL, &old, MPI_INT, 0, 0, MPI_NO_OP, win));
    EXPECT_ERROR(MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, win), MPI_ERR_OP);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    EXPECT_ERROR(MPI_Raccumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, win, &request), MPI_ERR_OP);
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Win_free(&win));
}

/// Calls every function with the handle of a freed window.
static void freed_window(void) {
    static int memory[4];
    int value = 0, result, flag;
    MPI_Win win;
    MPI_Request request;
    MPI_Group group;
    OK(MPI_Win_create(memory, 16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    const MPI_Win gone = win;
    OK(MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL, "the handle of a freed window is not null");
    for (int null = 0; null < 2; null++) {
        MPI_Win bad = null ? MPI_WIN_NULL : gone;
        EXPECT_ERROR(MPI_Win_fence(0, bad), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, bad), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Win_lock_all(0, bad), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Win_unlock(0, bad), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Win_unlock_all(bad), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Win_flush(0, bad), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Win_flush_all(bad), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Win_flush_local(0, bad), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Win_sync(bad), MPI_ERR_WIN);
        OK(MPI_Comm_group(MPI_COMM_SELF, &group));
        EXPECT_ERROR(MPI_Win_post(group, 0, bad), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Win_start(group, 0, bad), MPI_ERR_WIN);
        OK(MPI_Group_free(&group));
        EXPECT_ERROR(MPI_Win_complete(bad), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Win_wait(bad), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Win_test(bad, &flag), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, bad), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, bad), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, bad), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Get_accumulate(&value, 1, MPI_INT, &result, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, bad), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Fetch_and_op(&value, &result, MPI_INT, 0, 0, MPI_SUM, bad), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Compare_and_swap(&value, &value, &result, MPI_INT, 0, 0, bad), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Rput(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, bad, &request), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Rget(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, bad, &request), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Win_attach(bad, memory, 16), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Win_detach(bad, memory), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Win_get_group(bad, &group), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Win_set_name(bad, "name"), MPI_ERR_WIN);
        EXPECT_ERROR(MPI_Win_free(&bad), MPI_ERR_WIN);
    }
}

/// Returns a window of 4 integers whose error handler returns errors.
static MPI_Win make(int** memory) {
    MPI_Win win;
    OK(MPI_Win_allocate(16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, memory, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    for (int i = 0; i < 4; i++) (*memory)[i] = 100 + i;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    return win;
}

static void epochs(void) {
    int *memory, value = 7, flag;
    const int next = (rank + 1) % size;
    MPI_Win win = make(&memory);
    MPI_Group all, mine;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 1, &rank, &mine));
    // Without an open epoch each call must fail.
    EXPECT_ERROR(MPI_Get(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_flush_local_all(win), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_test(win, &flag), MPI_ERR_RMA_SYNC);
    // Within one kind of epoch, calls of another kind fail.
    OK(MPI_Win_lock_all(0, win));
    EXPECT_ERROR(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_unlock(next, win), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_start(mine, 0, win), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_post(mine, 0, win));
    EXPECT_ERROR(MPI_Win_post(mine, 0, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_start(mine, 0, win));
    EXPECT_ERROR(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_flush(rank, win), MPI_ERR_RMA_SYNC);
    if (next != rank) EXPECT_ERROR(MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_complete(win));
    EXPECT_ERROR(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_wait(win));
    if (next != rank) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
        EXPECT_ERROR(MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
        EXPECT_ERROR(MPI_Win_flush(next, win), MPI_ERR_RMA_SYNC);
        OK(MPI_Win_unlock(rank, win));
    }
    // Assertions that the called function does not allow, and invalid groups.
    EXPECT_ERROR(MPI_Win_fence(MPI_MODE_NOCHECK, win), MPI_ERR_ASSERT);
    EXPECT_ERROR(MPI_Win_fence(1 << 30, win), MPI_ERR_ASSERT);
    EXPECT_ERROR(MPI_Win_post(mine, MPI_MODE_NOPRECEDE, win), MPI_ERR_ASSERT);
    EXPECT_ERROR(MPI_Win_lock_all(MPI_MODE_NOSTORE, win), MPI_ERR_ASSERT);
    EXPECT_ERROR(MPI_Win_lock(0, next, 0, win), MPI_ERR_LOCKTYPE);
    EXPECT_ERROR(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, -1, 0, win), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Win_start(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
    EXPECT_ERROR(MPI_Win_post(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
    for (int i = 0; i < 4; i++) EXPECT_INT(memory[i], 100 + i);
    OK(MPI_Group_free(&mine));
    OK(MPI_Group_free(&all));
    OK(MPI_Win_free(&win));
}

/// The origin refuses bad displacements, and memory stays unchanged.
static void displacements(void) {
    int *memory, value[8] = {0};
    const int next = (rank + 1) % size;
    MPI_Win win = make(&memory);
    const MPI_Aint most = (MPI_Aint)((~(uint64_t)0) >> 1);
    const MPI_Aint bad[] = {-1, 4, 1000, most / 4, most / 2, most, -most, -most - 1};
    MPI_Datatype backwards;
    OK(MPI_Type_create_hvector(2, 1, -8, MPI_INT, &backwards));
    OK(MPI_Type_commit(&backwards));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const int wanted = bad[i] < 0 ? MPI_ERR_DISP : MPI_ERR_RMA_RANGE;
        EXPECT_ERROR(MPI_Put(value, 1, MPI_INT, next, bad[i], 1, MPI_INT, win), wanted);
        EXPECT_ERROR(MPI_Get(value, 1, MPI_INT, next, bad[i], 1, MPI_INT, win), wanted);
        EXPECT_ERROR(MPI_Accumulate(value, 1, MPI_INT, next, bad[i], 1, MPI_INT, MPI_SUM, win), wanted);
        EXPECT_ERROR(MPI_Fetch_and_op(value, value + 1, MPI_INT, next, bad[i], MPI_SUM, win), wanted);
        EXPECT_ERROR(MPI_Compare_and_swap(value, value + 1, value + 2, MPI_INT, next, bad[i], win), wanted);
    }
    EXPECT_ERROR(MPI_Put(value, 5, MPI_INT, next, 0, 5, MPI_INT, win), MPI_ERR_RMA_RANGE);
    EXPECT_ERROR(MPI_Put(value, 2, MPI_INT, next, 3, 2, MPI_INT, win), MPI_ERR_RMA_RANGE);
    EXPECT_ERROR(MPI_Put(value, 2, MPI_INT, next, 1, 1, backwards, win), MPI_ERR_RMA_RANGE);
    EXPECT_ERROR(MPI_Put(value, 2, MPI_INT, next, 0, 1, MPI_INT, win), MPI_ERR_TRUNCATE);
    OK(MPI_Get(value, 2, MPI_INT, next, 3, 1, backwards, win));
    OK(MPI_Win_flush(next, win));
    EXPECT_INT(value[0], 103);
    EXPECT_INT(value[1], 101);
    OK(MPI_Win_unlock(next, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 4; i++) EXPECT_INT(memory[i], 100 + i);
    OK(MPI_Type_free(&backwards));
    OK(MPI_Win_free(&win));
}

/// Makes an access of a dynamic window and ends its epoch. If the origin cannot detect the error, the owner refuses the access.
static int access_at(MPI_Win win, int to, MPI_Aint address) {
    const int value = -5;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win));
    const int at_once = MPI_Put(&value, 1, MPI_INT, to, address, 1, MPI_INT, win);
    const int at_end = MPI_Win_unlock(to, win);
    return at_once != MPI_SUCCESS ? at_once : at_end;
}

static void attached(void) {
    static int memory[8], never[2] = {3, 4};
    MPI_Win win;
    MPI_Aint mine[2], theirs[2];
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    EXPECT_ERROR(MPI_Win_attach(win, memory, -1), MPI_ERR_SIZE);
    EXPECT_ERROR(MPI_Win_attach(win, NULL, 4), MPI_ERR_ARG);
    OK(MPI_Win_attach(win, memory, sizeof memory));
    EXPECT_ERROR(MPI_Win_attach(win, memory, sizeof memory), MPI_ERR_RMA_ATTACH);
    EXPECT_ERROR(MPI_Win_attach(win, memory + 7, 8), MPI_ERR_RMA_ATTACH);
    EXPECT_ERROR(MPI_Win_detach(win, memory + 1), MPI_ERR_RMA_ATTACH);
    EXPECT_ERROR(MPI_Win_detach(win, never), MPI_ERR_RMA_ATTACH);
    OK(MPI_Get_address(memory, &mine[0]));
    OK(MPI_Get_address(never, &mine[1]));
    OK(MPI_Sendrecv(mine, 2, MPI_AINT, before, 0, theirs, 2, MPI_AINT, next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(access_at(win, next, theirs[0]));
    const MPI_Aint bad[] = {theirs[1], MPI_Aint_add(theirs[0], sizeof memory), MPI_Aint_add(theirs[0], -1), 0, -4};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) EXPECT_ERROR(access_at(win, next, bad[i]), MPI_ERR_RMA_RANGE);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    EXPECT_INT(memory[0], -5);
    EXPECT_INT(never[0], 3);
    OK(MPI_Win_detach(win, memory));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    EXPECT_ERROR(access_at(win, next, theirs[0]), MPI_ERR_RMA_RANGE);
    OK(MPI_Win_free(&win));
}

static void flavors(void) {
    int *memory, unit, other;
    MPI_Aint bytes;
    MPI_Win win = make(&memory), dynamic;
    EXPECT_ERROR(MPI_Win_attach(win, &other, 4), MPI_ERR_RMA_FLAVOR);
    EXPECT_ERROR(MPI_Win_detach(win, &other), MPI_ERR_RMA_FLAVOR);
    EXPECT_ERROR(MPI_Win_shared_query(win, size, &bytes, &unit, &memory), MPI_ERR_RANK);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic));
    OK(MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN));
    EXPECT_ERROR(MPI_Win_shared_query(dynamic, 0, &bytes, &unit, &memory), MPI_ERR_RMA_FLAVOR);
    OK(MPI_Win_free(&dynamic));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    several_hosts = !on_one_host();
    wrong_at_one();
    no_operation();
    mismatched();
    shared_over_hosts();
    freed_window();
    epochs();
    displacements();
    attached();
    flavors();
    OK(MPI_Finalize());
    return 0;
}
