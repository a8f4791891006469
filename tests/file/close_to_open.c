// Processes of several hosts use one file of a network file system, whose hosts see the others' writes only after a sync or open:
// `close_to_open FOLDER [no_locks]`. No byte may be lost, although hosts write to the same pages.
#include <mpi.h>

#include "check.h"

enum { kBytes = 30000, kRounds = 6, kUpdates = 10 };

static int rank, size;
static char found[kBytes + 1], wanted[kBytes];

static void sync_all(MPI_File file) {
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_sync(file));
}

static void expect_contents(MPI_File file, const char* what) {
    MPI_Status status;
    int count;
    OK(MPI_File_read_at(file, 0, found, kBytes + 1, MPI_BYTE, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK(count == kBytes, "%s: %d bytes", what, count);
    for (int i = 0; i < kBytes; ++i)
        CHECK(found[i] == wanted[i], "%s: byte %d is %d instead of %d", what, i, found[i], wanted[i]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/// Writes pieces of random lengths that belong to the processes in turn.
static void interleaved_writes(MPI_File file, int round) {
    uint64_t state = test_seed + (uint64_t)round;
    for (int at = 0, owner = 0; at < kBytes; owner = (owner + 1) % size) {
        int length = 1 + random_below(&state, 500);
        if (length > kBytes - at) length = kBytes - at;
        memset(wanted + at, 'A' + (round + owner) % 26, (size_t)length);
        if (owner == rank) OK(MPI_File_write_at(file, at, wanted + at, length, MPI_BYTE, MPI_STATUS_IGNORE));
        at += length;
    }
}

static void rounds(MPI_File file) {
    for (int round = 0; round < kRounds; ++round) {
        OK(MPI_File_read_at(file, 0, found, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));  // fills the cache of this host
        OK(MPI_Barrier(MPI_COMM_WORLD));
        interleaved_writes(file, round);
        sync_all(file);
        expect_contents(file, "independent writes");
    }
    for (int round = 0; round < kRounds; ++round) {
        const int share = kBytes / size, at = rank * share, mine = rank == size - 1 ? kBytes - at : share;
        for (int i = 0; i < kBytes; ++i) wanted[i] = (char)('a' + (i / 7 + round) % 26);
        OK(MPI_File_write_at_all(file, at, wanted + at, mine, MPI_BYTE, MPI_STATUS_IGNORE));
        sync_all(file);
        expect_contents(file, "collective writes");
    }
}

/// A process sees its own writes without a sync, also collective ones that processes of other hosts have performed (MPI 5.0 section 14.6.1).
static void own_data(MPI_File file) {
    MPI_Datatype column;
    char mine[300], back[300];
    OK(MPI_Type_create_resized(MPI_BYTE, 0, size, &column));
    OK(MPI_Type_commit(&column));
    OK(MPI_File_set_view(file, rank, MPI_BYTE, column, "native", MPI_INFO_NULL));
    for (int round = 0; round < kRounds; ++round) {
        OK(MPI_File_read_at(file, 0, back, sizeof back, MPI_BYTE, MPI_STATUS_IGNORE));
        memset(mine, 1 + rank + round, sizeof mine);
        OK(MPI_File_write_at_all(file, 0, mine, sizeof mine, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_read_at(file, 0, back, sizeof back, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK(memcmp(mine, back, sizeof mine) == 0, "round %d, after a collective write", round);
        memset(mine, 50 + rank + round, sizeof mine);
        OK(MPI_File_write_at(file, 0, mine, sizeof mine, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_read_at_all(file, 0, back, sizeof back, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK(memcmp(mine, back, sizeof mine) == 0, "round %d, before a collective read", round);
        // Of two writes to the same bytes the later one must last, whichever host performs it.
        const int last_is_collective = round % 2;
        for (int turn = 0; turn < 2; ++turn) {
            memset(mine, 100 + rank + 10 * turn + round, sizeof mine);
            if (turn == last_is_collective)
                OK(MPI_File_write_at_all(file, 0, mine, sizeof mine, MPI_BYTE, MPI_STATUS_IGNORE));
            else
                OK(MPI_File_write_at(file, 0, mine, sizeof mine, MPI_BYTE, MPI_STATUS_IGNORE));
        }
        sync_all(file);
        OK(MPI_File_read_at(file, 0, back, sizeof back, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK(memcmp(mine, back, sizeof mine) == 0, "round %d, after two writes", round);
    }
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_Type_free(&column));
}

/// Libraries that write together, and then read without MPI_File_sync, ask this hint whether they may.
static void visibility(MPI_File file) {
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL];
    int flag;
    OK(MPI_File_get_info(file, &info));
    OK(MPI_Info_get(info, "romio_visibility_immediate", sizeof value - 1, value, &flag));
    CHECK(flag && strcmp(value, "false") == 0, "romio_visibility_immediate is %s", flag ? value : "missing");
    OK(MPI_Info_free(&info));
}

static void sizes(MPI_File file) {
    for (int round = 0; round < kRounds; ++round) {
        MPI_Offset bytes;
        OK(MPI_File_set_size(file, 1000 + 777 * round % 5000));
        OK(MPI_File_get_size(file, &bytes));
        CHECK(bytes == 1000 + 777 * round % 5000);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_File_preallocate(file, 6000 + round));
        OK(MPI_File_get_size(file, &bytes));
        CHECK(bytes == 6000 + round);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

/// In atomic mode a write is visible to the other processes at once, without a sync.
static void atomic_mode(MPI_File file) {
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_set_atomicity(file, 1));
    for (int turn = 0; turn < kUpdates; ++turn) {
        const int writer = turn % size, value = 1000 + turn;
        int seen = 0;
        if (rank == writer) OK(MPI_File_write_at(file, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_File_read_at(file, 0, &seen, 1, MPI_INT, MPI_STATUS_IGNORE));
        CHECK(seen == value, "%d instead of %d", seen, value);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

static void refused_atomic_mode(MPI_File file) {
    int class_found = MPI_SUCCESS, error = MPI_File_set_atomicity(file, 1);
    if (error == MPI_SUCCESS) error = MPI_File_write_at(file, 0, wanted, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    OK(MPI_Error_class(error, &class_found));
    CHECK(class_found == MPI_ERR_UNSUPPORTED_OPERATION, "%d", class_found);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(argc == 2 || argc == 3, "arguments: FOLDER [no_locks]");
    start_seed(1);
    char path[4000];
    snprintf(path, sizeof path, "%s/shared", argv[1]);
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_set_size(file, kBytes));
    visibility(file);
    rounds(file);
    own_data(file);
    sync_all(file);
    sizes(file);
    (argc == 3 ? refused_atomic_mode : atomic_mode)(file);
    OK(MPI_File_close(&file));
    OK(MPI_Finalize());
    return 0;
}
