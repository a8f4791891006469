// One rank revokes a window while the others wait in a call on it, in each kind of epoch: every pending and later call on it returns
// MPIX_ERR_REVOKED, and MPI_Win_free frees it. No rank dies.
#include <mpi-ext.h>

#include "check.h"

static int rank, size, one_host;
static MPI_Group group_of_0;

enum { kInts = 16 };

/// A window of one of four kinds. `memory`: the memory to free after it; null: none. `base`: the displacement of rank 0's memory.
typedef struct {
    MPI_Win win;
    int* memory;
    MPI_Aint base;
} TestWindow;

static TestWindow make_window(int kind) {
    TestWindow made = {MPI_WIN_NULL, NULL, 0};
    int* allocated;
    const MPI_Aint bytes = kInts * (MPI_Aint)sizeof(int);
    if (kind % 4 == 1 && !one_host) kind = 0;
    if (kind % 4 >= 2) made.memory = calloc(kInts, sizeof(int));
    switch (kind % 4) {
        case 0:
            OK(MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &made.win));
            break;
        case 1:
            OK(MPI_Win_allocate_shared(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &made.win));
            break;
        case 2:
            OK(MPI_Win_create(made.memory, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &made.win));
            break;
        default:
            OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &made.win));
            OK(MPI_Win_attach(made.win, made.memory, bytes));
            OK(MPI_Get_address(made.memory, &made.base));
            OK(MPI_Bcast(&made.base, 1, MPI_AINT, 0, MPI_COMM_WORLD));
    }
    OK(MPI_Win_set_errhandler(made.win, MPI_ERRORS_RETURN));
    return made;
}

static void expect_revoked(int code, int what) {
    CHECK(class_of(code) == MPIX_ERR_REVOKED, "call %d gave class %d", what, class_of(code));
}

/// Accesses rank 0's memory again and again, until a call fails. Returns its error.
static int access_until_error(const TestWindow* w, int what) {
    const int one = 1;
    int result;
    MPI_Request request;
    for (;;) {
        int code = MPI_SUCCESS;
        switch (what % 4) {
            case 0:
                code = MPI_Put(&one, 1, MPI_INT, 0, w->base, 1, MPI_INT, w->win);
                break;
            case 1:
                code = MPI_Fetch_and_op(&one, &result, MPI_INT, 0, w->base, MPI_SUM, w->win);
                break;
            case 2:
                code = MPI_Rget(&result, 1, MPI_INT, 0, w->base, 1, MPI_INT, w->win, &request);
                if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
                break;
            default:
                code = MPI_Accumulate(&one, 1, MPI_INT, 0, w->base, 1, MPI_INT, MPI_SUM, w->win);
        }
        if (code == MPI_SUCCESS && what % 4 != 2) code = MPI_Win_flush(0, w->win);
        if (code != MPI_SUCCESS) return code;
    }
}

/// What rank 0 does before it revokes the window in the state `what`.
static void prepare(int what, const TestWindow* w) {
    if (what == 5 || what == 6 || what == 7) OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->win));
    if (what == 8) OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->win));
    if (what == 9 || what == 14) OK(MPI_Win_fence(0, w->win));
}

/// Returns the error of a call that may find the window revoked already.
#define TRY(call)                               \
    do {                                        \
        const int code_ = (call);               \
        if (code_ != MPI_SUCCESS) return code_; \
    } while (0)

/// Waits in a call that cannot complete, because rank 0 does not take part, or accesses the window until it is revoked. Returns the error.
static int wait_in(int what, const TestWindow* w) {
    const MPI_Win win = w->win;
    const int one = 1;
    int flag = 0, code;
    switch (what) {
        case 0:
            return MPI_Win_fence(0, win);
        case 1:
            return MPI_Win_start(group_of_0, 0, win);
        case 2:
            TRY(MPI_Win_post(group_of_0, 0, win));
            return MPI_Win_wait(win);
        case 3:
            TRY(MPI_Win_post(group_of_0, MPI_MODE_NOCHECK, win));
            do code = MPI_Win_test(win, &flag);
            while (code == MPI_SUCCESS && !flag);
            return code;
        case 4:  // a post that is never received
            TRY(MPI_Win_post(group_of_0, 0, win));
            return MPI_Win_fence(0, win);
        case 5:
        case 8:
            // Rank 0 may have freed its window and so released the lock before this rank learns of the revocation.
            for (;;) {
                TRY(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
                TRY(MPI_Win_unlock(0, win));
            }
        case 6:
            for (;;) {
                TRY(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
                TRY(MPI_Win_unlock(0, win));
            }
        case 7:
            for (;;) {  // MPI_Win_lock_all waits for locks of other hosts only at the first access
                TRY(MPI_Win_lock_all(0, win));
                TRY(MPI_Put(&one, 1, MPI_INT, 0, w->base, 1, MPI_INT, win));
                TRY(MPI_Win_unlock_all(win));
            }
        case 9:
            TRY(MPI_Win_fence(0, win));
            TRY(MPI_Put(&one, 1, MPI_INT, 0, w->base, 1, MPI_INT, win));
            return MPI_Win_fence(0, win);
        case 10:
        case 11:
        case 12:
        case 13:
            TRY(MPI_Win_lock_all(0, win));
            return access_until_error(w, what);
        case 14:
            TRY(MPI_Win_fence(0, win));
            for (;;) {
                TRY(MPI_Put(&one, 1, MPI_INT, 0, w->base, 1, MPI_INT, win));
                TRY(MPIX_Win_is_revoked(win, &flag));  // a loop of puts makes no progress
            }
        default:
            TRY(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
            return access_until_error(w, what);
    }
}
enum { kStates = 18 };

/// Calls that end an epoch. They fail whether the epoch is open or not.
static void end_epochs(MPI_Win win) {
    expect_revoked(MPI_Win_unlock(0, win), 40);
    expect_revoked(MPI_Win_unlock_all(win), 41);
    expect_revoked(MPI_Win_complete(win), 42);
    expect_revoked(MPI_Win_wait(win), 43);
    expect_revoked(MPI_Win_fence(MPI_MODE_NOSUCCEED, win), 44);
}

static void try_accesses(const TestWindow* w) {
    const MPI_Win win = w->win;
    int one = 1, result = 0;
    MPI_Request request;
    expect_revoked(MPI_Put(&one, 1, MPI_INT, 0, w->base, 1, MPI_INT, win), 50);
    expect_revoked(MPI_Put(&one, 1, MPI_INT, size - 1, w->base, 1, MPI_INT, win), 51);
    expect_revoked(MPI_Get(&result, 1, MPI_INT, 0, w->base, 1, MPI_INT, win), 52);
    expect_revoked(MPI_Accumulate(&one, 1, MPI_INT, 0, w->base, 1, MPI_INT, MPI_SUM, win), 53);
    expect_revoked(MPI_Get_accumulate(&one, 1, MPI_INT, &result, 1, MPI_INT, 0, w->base, 1, MPI_INT, MPI_SUM, win), 54);
    expect_revoked(MPI_Fetch_and_op(&one, &result, MPI_INT, 0, w->base, MPI_SUM, win), 55);
    expect_revoked(MPI_Compare_and_swap(&one, &one, &result, MPI_INT, 0, w->base, win), 56);
    expect_revoked(MPI_Put(&one, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win), 57);
    expect_revoked(MPI_Rput(&one, 1, MPI_INT, 0, w->base, 1, MPI_INT, win, &request), 58);
    expect_revoked(MPI_Rget(&result, 1, MPI_INT, rank, w->base, 1, MPI_INT, win, &request), 59);
    expect_revoked(MPI_Win_flush(0, win), 60);
    expect_revoked(MPI_Win_flush_local(size - 1, win), 61);
    expect_revoked(MPI_Win_flush_all(win), 62);
}

/// Every call that is not local fails on a revoked window.
static void try_all(const TestWindow* w, int ends_first) {
    const MPI_Win win = w->win;
    MPI_Group group;
    int flag = 0, failed = -1;
    while (!flag) OK(MPIX_Win_is_revoked(win, &flag));  // another member may have learned of it earlier
    if (ends_first) end_epochs(win);
    try_accesses(w);
    expect_revoked(MPI_Win_fence(0, win), 30);
    expect_revoked(MPI_Win_start(group_of_0, 0, win), 31);
    expect_revoked(MPI_Win_post(group_of_0, 0, win), 32);
    expect_revoked(MPI_Win_test(win, &flag), 33);
    expect_revoked(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), 34);
    expect_revoked(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, MPI_MODE_NOCHECK, win), 35);
    expect_revoked(MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, win), 36);
    expect_revoked(MPI_Win_lock_all(0, win), 37);
    expect_revoked(MPI_Win_lock_all(MPI_MODE_NOCHECK, win), 38);
    try_accesses(w);
    if (!ends_first && rank % 2) end_epochs(win);
    OK(MPI_Win_sync(win));
    OK(MPI_Win_get_group(win, &group));
    OK(MPI_Group_free(&group));
    OK(MPIX_Win_get_failed(win, &group));
    OK(MPI_Group_size(group, &failed));
    EXPECT_INT(failed, 0);
    OK(MPI_Group_free(&group));
}

static void free_window(TestWindow* w) {
    OK(MPI_Win_free(&w->win));
    CHECK(w->win == MPI_WIN_NULL, "the handle of a freed window is not null");
}

static void revoke_in(int what, int kind) {
    TestWindow w = make_window(kind);
    int flag = 1, value = 0;
    for (int i = 0; i < what % 3; ++i) OK(MPI_Win_fence(i + 1 < what % 3 ? 0 : MPI_MODE_NOSUCCEED, w.win));
    OK(MPIX_Win_is_revoked(w.win, &flag));
    EXPECT_INT(flag, 0);
    if (rank == 0 && what != 9 && what != 14) prepare(what, &w);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        if (what == 9 || what == 14) prepare(what, &w);
        if ((what + kind) % 2) OK(MPI_Recv(&value, 1, MPI_INT, size - 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPIX_Win_revoke(w.win));
    } else {
        if ((what + kind) % 2 && rank == size - 1) OK(MPI_Send(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD));
        const int code = wait_in(what, &w);
        expect_revoked(code, what);
    }
    try_all(&w, kind % 2);
    free_window(&w);
    OK(MPI_Barrier(MPI_COMM_WORLD));  // others may have accessed the memory until they knew
    free(w.memory);
}

/// The others are in MPI_Win_free when rank 0 revokes the window, and free it.
static void revoke_while_freed(int kind) {
    TestWindow w = make_window(kind);
    int value = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));  // a revocation that arrives within the creation makes it fail
    if (rank == 0) {
        if (size > 1) OK(MPI_Recv(&value, 1, MPI_INT, size - 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPIX_Win_revoke(w.win));
    } else if (rank == size - 1) {
        OK(MPI_Send(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD));
    }
    free_window(&w);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    free(w.memory);
}

/// Rank 1 revokes a window while an access of the last rank waits for rank 0, which computes and answers nothing until the access has ended.
static void revoke_pending_access(int waits_by_flush) {
    if (size < 3) return;
    const char* const waiting = getenv("STARLING_WAIT");
    const int answers = waiting && strcmp(waiting, "thread") == 0;  // a thread of rank 0 may answer before the revocation
    MPI_Win signal;
    int *flags, value = 0;
    OK(MPI_Win_allocate_shared(rank == 0 ? sizeof(int) : 0, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &flags, &signal));
    TestWindow w = make_window(3);
    MPI_Aint bytes;
    OK(MPI_Win_shared_query(signal, 0, &bytes, &(int){0}, &flags));
    if (rank == 0) *flags = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        while (__atomic_load_n(flags, __ATOMIC_ACQUIRE) == 0) continue;
    } else if (rank == 1) {
        OK(MPI_Recv(&value, 1, MPI_INT, size - 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPIX_Win_revoke(w.win));
    } else if (rank == size - 1) {
        MPI_Request request;
        OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, w.win));
        if (waits_by_flush)
            OK(MPI_Get(&value, 1, MPI_INT, 0, w.base, 1, MPI_INT, w.win));
        else
            OK(MPI_Rget(&value, 1, MPI_INT, 0, w.base, 1, MPI_INT, w.win, &request));
        OK(MPI_Send(&value, 1, MPI_INT, 1, 9, MPI_COMM_WORLD));
        const int code = waits_by_flush ? MPI_Win_flush(0, w.win) : MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS || !answers) expect_revoked(code, 70);
        for (int flag = 0; !flag;)
            OK(MPIX_Win_is_revoked(w.win, &flag));  // the epoch is open, so only then may the window be freed
        __atomic_store_n(flags, 1, __ATOMIC_RELEASE);
    }
    free_window(&w);
    OK(MPI_Win_free(&signal));
    free(w.memory);
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    one_host = on_one_host();
    MPI_Group all;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 1, (int[]){0}, &group_of_0));
    for (int what = 0; what < kStates; ++what)
        for (int kind = 0; kind < 4; ++kind) revoke_in(what, kind);
    for (int kind = 0; kind < 4; ++kind) revoke_while_freed(kind);
    for (int waits_by_flush = 0; one_host && waits_by_flush < 2; ++waits_by_flush) revoke_pending_access(waits_by_flush);
    OK(MPI_Group_free(&group_of_0));
    OK(MPI_Group_free(&all));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) puts("every call was revoked");
    OK(MPI_Finalize());
    return 0;
}
