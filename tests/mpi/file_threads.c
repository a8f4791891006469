// Two accesses through one handle at the same time, and an access of one thread beside MPI_File_set_view of another.
#include <pthread.h>
#include <stdatomic.h>

#include "files.h"

enum { kPieces = 2500, kPiece = 16, kBytes = kPieces * kPiece };

static char mine[2 * kBytes], other[kBytes], found[2 * kBytes];

/// Returns a type of `kPieces` pieces with gaps, whose data takes several system calls.
static MPI_Datatype pieces_with_gaps(int gap) {
    MPI_Datatype one, type;
    OK(MPI_Type_vector(kPieces, kPiece, kPiece + gap, MPI_CHAR, &one));
    OK(MPI_Type_create_resized(one, 0, (MPI_Aint)kPieces * (kPiece + gap), &type));
    OK(MPI_Type_free(&one));
    OK(MPI_Type_commit(&type));
    return type;
}

static void expect_undivided(MPI_File file) {
    OK(MPI_File_read_at(file, 0, found, kBytes, MPI_CHAR, MPI_STATUS_IGNORE));
    CHECK(found[0] == 'a' || found[0] == 'b', "%d", found[0]);
    for (int i = 1; i < kBytes; ++i)
        if (found[i] != found[0]) fail_at(__FILE__, __LINE__, "byte", "%d is %c, the first one is %c", i, found[i], found[0]);
}

static void own_file_name(char name[300]) {
    char common[256];
    int rank;
    new_file_name(common);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    snprintf(name, 300, "%s_%d", common, rank);
}

struct Write {
    MPI_File file;
    char* data;
    int count;
    MPI_Datatype type;
};

static void* write_in_thread(void* argument) {
    const struct Write* const write = argument;
    for (int turn = 0; turn < 8; ++turn)
        OK(MPI_File_write_at(write->file, 0, write->data, write->count, write->type, MPI_STATUS_IGNORE));
    return NULL;
}

/// In atomic mode one of two conflicting transfers through one handle comes first as a whole.
static void atomic_through_one_handle(void) {
    MPI_File file;
    char name[300];
    own_file_name(name);
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_set_atomicity(file, 1));
    MPI_Datatype pieces = pieces_with_gaps(kPiece);
    memset(mine, 'a', sizeof mine);
    memset(other, 'b', sizeof other);
    for (int turn = 0; turn < 8; ++turn) {
        MPI_Request requests[2];
        OK(MPI_File_iwrite_at(file, 0, mine, 1, pieces, &requests[0]));
        OK(MPI_File_iwrite_at(file, 0, other, kBytes, MPI_CHAR, &requests[1]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        expect_undivided(file);
        OK(MPI_File_iwrite_at(file, 0, mine, 1, pieces, &requests[0]));
        OK(MPI_File_write_at(file, 0, other, kBytes, MPI_CHAR, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        expect_undivided(file);
    }
    struct Write first = {file, mine, 1, pieces}, second = {file, other, kBytes, MPI_CHAR};
    pthread_t threads[2];
    CHECK(pthread_create(&threads[0], NULL, write_in_thread, &first) == 0);
    CHECK(pthread_create(&threads[1], NULL, write_in_thread, &second) == 0);
    for (int i = 0; i < 2; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
    expect_undivided(file);
    OK(MPI_Type_free(&pieces));
    OK(MPI_File_close(&file));
}

static atomic_int stop;

/// Sets the view from the file's beginning on and the one behind kHalf in turn, each with a type that nothing else holds.
static const MPI_Offset kHalf = 1 << 20;
static void* change_views(void* argument) {
    const MPI_File file = *(MPI_File*)argument;
    for (int turn = 0; !stop; ++turn) {
        MPI_Datatype type = pieces_with_gaps(turn % 2 ? 8 : 24);
        OK(MPI_File_set_view(file, turn % 2 ? kHalf : 0, MPI_CHAR, type, "native", MPI_INFO_NULL));
        OK(MPI_Type_free(&type));
    }
    return NULL;
}

/// Expects that a write through one of the two views has left its data in one half only.
static void expect_one_half(MPI_File plain) {
    MPI_Offset bytes;
    OK(MPI_File_get_size(plain, &bytes));
    const int behind = bytes > kHalf;
    const MPI_Offset first = behind ? kHalf : 0, gap = behind ? 8 : 24;
    EXPECT_INT(bytes, first + kPieces * (kPiece + gap) - gap);
    OK(MPI_File_read_at(plain, first, found,
                        (int)(bytes - first < (MPI_Offset)sizeof found ? bytes - first : (MPI_Offset)sizeof found), MPI_CHAR,
                        MPI_STATUS_IGNORE));
    for (int i = 0; i < kBytes; ++i) EXPECT_INT(found[i], i % (kPiece + gap) < kPiece ? 'b' : 0);
    char start[100] = {0};
    OK(MPI_File_read_at(plain, 0, start, sizeof start, MPI_CHAR, MPI_STATUS_IGNORE));
    if (behind)
        for (size_t i = 0; i < sizeof start; ++i) EXPECT_INT(start[i], 0);
}

/// A blocking access keeps the view with which it began.
static void views_beside_accesses(void) {
    MPI_File file, plain;
    char name[300];
    own_file_name(name);
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &plain));
    MPI_Datatype type = pieces_with_gaps(24);
    OK(MPI_File_set_view(file, 0, MPI_CHAR, type, "native", MPI_INFO_NULL));
    OK(MPI_Type_free(&type));
    memset(other, 'b', sizeof other);
    pthread_t thread;
    stop = 0;
    CHECK(pthread_create(&thread, NULL, change_views, &file) == 0);
    for (int turn = 0; turn < 15; ++turn) {
        OK(MPI_File_set_size(plain, 0));
        OK(MPI_File_write_at(file, 0, other, kBytes, MPI_CHAR, MPI_STATUS_IGNORE));
        expect_one_half(plain);
    }
    stop = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    OK(MPI_File_close(&plain));
    OK(MPI_File_close(&file));
}

int main(int argc, char** argv) {
    int level;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
    CHECK(level == MPI_THREAD_MULTIPLE);
    atomic_through_one_handle();
    views_beside_accesses();
    OK(MPI_Finalize());
    return 0;
}
