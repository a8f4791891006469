// One member of a collective constructor is refused a resource: its n-th mapping, its n-th descriptor of each kind, or its n-th allocation.
// Or its attribute's copy function fails. The call must succeed on all members or fail on all, and none may hang. Afterwards the same call
// must succeed on all.
#define _GNU_SOURCE
#include "dynamic.h"
#include "refuse.h"

enum what {
    kWinCreate,
    kWinAllocate,
    kWinShared,
    kWinDynamic,
    kDup,
    kIdup,
    kSplit,
    kSplitType,
    kCreate,
    kCreateGroup,
    kFromGroup,
    kCart,
    kGraph,
    kIntercomm,
    kMerge,
    kFromGroups,
    kMeet,
    kWhats,
    kSpawn = kWhats
};
static const char* const kCalls[] = {"MPI_Win_create",
                                     "MPI_Win_allocate",
                                     "MPI_Win_allocate_shared",
                                     "MPI_Win_create_dynamic",
                                     "MPI_Comm_dup",
                                     "MPI_Comm_idup",
                                     "MPI_Comm_split",
                                     "MPI_Comm_split_type",
                                     "MPI_Comm_create",
                                     "MPI_Comm_create_group",
                                     "MPI_Comm_create_from_group",
                                     "MPI_Cart_create",
                                     "MPI_Dist_graph_create_adjacent",
                                     "MPI_Intercomm_create",
                                     "MPI_Intercomm_merge",
                                     "MPI_Intercomm_create_from_groups",
                                     "MPI_Comm_accept and MPI_Comm_connect",
                                     "MPI_Comm_spawn_multiple"};

static MPI_Comm home, side, between;  // of all ranks, of this rank's half, and between the halves; they return errors
static MPI_Group all, low, high;      // groups of all members and of the two halves
static int rank, size, is_low;
static char port[MPI_MAX_PORT_NAME];
static long memory[8];
static int copies;  // copies of an attribute so far

/// Sums `one` over a communicator and returns whether all or none of its members passed 1.
static int is_of_all_or_none(int one, MPI_Comm comm) {
    int sum, members;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    OK(MPI_Comm_size(comm, &members));
    return sum == 0 || sum == members;
}

/// Both sides retry until they are connected, because neither can know that the other has failed.
static int meet(MPI_Comm* made) {
    int error;
    do {
        error =
            is_low ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, side, made) : MPI_Comm_connect(port, MPI_INFO_NULL, 0, side, made);
        const int left = refused_in;
        refused_in = 0;  // the check itself must not fail
        CHECK(is_of_all_or_none(error != MPI_SUCCESS, side), "the call failed on some members only; error %d on this one",
              error);
        refused_in = left;
    } while (error);
    return error;
}

static int spawn(MPI_Comm* made) {
    char* commands[] = {(char*)own_path(), (char*)own_path()};
    const int counts[] = {1, 1};
    const MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    return MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, counts, infos, 0, home, made, MPI_ERRCODES_IGNORE);
}

/// Calls constructor number `what`. The new object must exist on all members or on none; the caller frees it.
static int make(int what, MPI_Win* window, MPI_Comm* made) {
    void* base;
    const int dims[] = {size}, periods[] = {1}, next = (rank + 1) % size, last = (rank + size - 1) % size;
    MPI_Request request;
    int error;
    *window = MPI_WIN_NULL, *made = MPI_COMM_NULL;
    switch (what) {
        case kWinCreate:
            return MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, home, window);
        case kWinAllocate:
            return MPI_Win_allocate(5000, 1, MPI_INFO_NULL, home, &base, window);
        case kWinShared:
            return MPI_Win_allocate_shared(5000, 1, MPI_INFO_NULL, home, &base, window);
        case kWinDynamic:
            return MPI_Win_create_dynamic(MPI_INFO_NULL, home, window);
        case kDup:
            return MPI_Comm_dup(home, made);
        case kIdup:
            error = MPI_Comm_idup(home, made, &request);
            return error ? error : MPI_Wait(&request, MPI_STATUS_IGNORE);
        case kSplit:
            return MPI_Comm_split(home, 0, 0, made);
        case kSplitType:
            return MPI_Comm_split_type(home, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, made);
        case kCreate:
            return MPI_Comm_create(home, all, made);
        case kCreateGroup:
            return MPI_Comm_create_group(home, all, 7, made);
        case kFromGroup:
            return MPI_Comm_create_from_group(all, "one fails", MPI_INFO_NULL, MPI_ERRORS_RETURN, made);
        case kCart:
            return MPI_Cart_create(home, 1, dims, periods, 0, made);
        case kGraph:
            return MPI_Dist_graph_create_adjacent(home, 1, &last, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                                  made);
        case kIntercomm:
            return MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, is_low ? size / 2 : 0, 3, made);
        case kMerge:
            return MPI_Intercomm_merge(between, !is_low, made);
        case kFromGroups:
            return MPI_Intercomm_create_from_groups(is_low ? low : high, 0, is_low ? high : low, 0, "one side fails",
                                                    MPI_INFO_NULL, MPI_ERRORS_RETURN, made);
        case kMeet:
            return meet(made);
        default:
            return spawn(made);
    }
}

static void unmake(int what, MPI_Win* window, MPI_Comm* made) {
    if (*window != MPI_WIN_NULL) OK(MPI_Win_free(window));
    if (*made == MPI_COMM_NULL) return;
    if (what == kSpawn) OK(MPI_Barrier(*made));
    OK(what >= kMeet ? MPI_Comm_disconnect(made) : MPI_Comm_free(made));
}

/// Makes the call once, and refuses the victim its resource request number `which` of this kind. Returns false if the victim made fewer
/// requests, so that none was refused.
static int try_once(int what, int kind, int which, int victim) {
    MPI_Win window;
    MPI_Comm made;
    const int copies_before = copies;
    if (rank == victim) refused_kind = kind, refused_in = which;
    const int error = make(what, &window, &made);
    int was_refused = rank == victim && refused_in == 0;
    refused_in = 0;
    CHECK(is_of_all_or_none(error != MPI_SUCCESS, MPI_COMM_WORLD),
          "%s, %s number %d of rank %d refused: error %d here, not everywhere", kCalls[what], kNames[kind], which, victim,
          error);
    unmake(what, &window, &made);
    EXPECT_INT(copies, copies_before);
    OK(MPI_Bcast(&was_refused, 1, MPI_INT, victim, MPI_COMM_WORLD));
    return was_refused;
}

/// Repeats a call for each kind of resource and each victim, and refuses request 1, 1 + stride, 1 + 2 * stride ... in turn. Finally lets
/// the call succeed.
static void try_all(int what, int stride) {
    for (int kind = 0; kCanRefuse && kind < kKinds; kind++)
        for (int victim = 0; victim < size; victim++)
            for (int which = 1; try_once(what, kind, which, victim); which += stride) CHECK(which < 1000, "%s", kCalls[what]);
    MPI_Win window;
    MPI_Comm made;
    OK(make(what, &window, &made));
    unmake(what, &window, &made);
}

static int copy_attribute(MPI_Comm comm, int keyval, void* extra, void* value, void* copy, int* flag) {
    (void)comm, (void)keyval, (void)extra;
    if (is_refused(kCopy, ENOMEM)) return MPI_ERR_OTHER;
    *(void**)copy = value, *flag = 1, ++copies;
    return MPI_SUCCESS;
}

static int delete_attribute(MPI_Comm comm, int keyval, void* value, void* extra) {
    (void)comm, (void)keyval, (void)value, (void)extra;
    --copies;
    return MPI_SUCCESS;
}

static void make_home(void) {
    int key, first = 0, half = size / 2;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &home));
    OK(MPI_Comm_create_keyval(copy_attribute, delete_attribute, &key, NULL));
    OK(MPI_Comm_set_attr(home, key, memory));
    OK(MPI_Comm_set_errhandler(home, MPI_ERRORS_RETURN));
    OK(MPI_Comm_free_keyval(&key));
    is_low = rank < half;
    OK(MPI_Comm_split(home, is_low, 0, &side));
    OK(MPI_Intercomm_create(side, 0, home, is_low ? half : 0, 1, &between));
    OK(MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN));
    OK(MPI_Comm_group(home, &all));
    int ranges[2][3] = {{0, half - 1, 1}, {half, size - 1, 1}};
    OK(MPI_Group_range_incl(all, 1, &ranges[0], &low));
    OK(MPI_Group_range_incl(all, 1, &ranges[1], &high));
    if (rank == first) OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Bcast(port, sizeof port, MPI_CHAR, first, home));
}

static void free_home(void) {
    if (rank == 0) OK(MPI_Close_port(port));
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&low));
    OK(MPI_Group_free(&high));
    OK(MPI_Comm_free(&between));
    OK(MPI_Comm_free(&side));
    OK(MPI_Comm_free(&home));
}

/// A process without memory even for its error report must end, and its job with it.
static void starve(void) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    MPI_Comm made;
    refused_kind = kMalloc, refused_in = rank == 0, refused_for_ever = 1;
    MPI_Comm_split_type(home, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
#endif
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    if (was_met_as_child()) return 0;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    make_home();
    const int is_one_host = on_one_host();
    if (argc > 1)
        starve();
    else if (getenv("TEST_SPAWN"))
        try_all(kSpawn, 11);
    else
        for (int what = 0; what < kWhats; what++)
            if (what != kWinShared || is_one_host) try_all(what, 1);
    free_home();
    OK(MPI_Finalize());
    return 0;
}
