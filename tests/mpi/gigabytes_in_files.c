// Single calls that move more than 2 GB on rank 0, and a little on the others: contiguous and interleaved data, counts of large types and large
// counts. The file is larger than 4 GB, with a hole at its start. Needs 2.3 GB of memory and as much space in TEST_FOLDER.
#include "files.h"

enum { kPiece = 1 << 20 };
#define GB ((MPI_Offset)1 << 30)
#define START (3 * GB + 123)

static int rank, size;
static int64_t bytes;
static unsigned char* data;

static void expect_bytes(const MPI_Status* status) {
    MPI_Count found = -1;
    OK(MPI_Get_count_c(status, MPI_BYTE, &found));
    EXPECT_INT(found, bytes);
    OK(MPI_Get_elements_c(status, MPI_BYTE, &found));
    EXPECT_INT(found, bytes);
}

/// Numbers in the data let errors of 4 GB and of a whole piece show.
static void fill(uint64_t key) {
    for (int64_t i = 0; i < bytes; i += 8) {
        const uint64_t word = ((uint64_t)i + key) * 0x9e3779b97f4a7c15u;
        memcpy(data + i, &word, 8);
    }
}

static void check(uint64_t key) {
    for (int64_t i = 0; i < bytes; i += 8) {
        const uint64_t word = ((uint64_t)i + key) * 0x9e3779b97f4a7c15u;
        CHECK(memcmp(data + i, &word, 8) == 0, "the data differ from byte %lld on", (long long)i);
    }
    memset(data, 0, (size_t)bytes);
}

/// Offset of this rank's data where all have theirs one after the other, that of rank 0 last.
static MPI_Offset place(void) {
    return START + (rank == 0 ? (size - 1) * (MPI_Offset)kPiece : (rank - 1) * (MPI_Offset)kPiece);
}

static void independent(MPI_File file) {
    MPI_Status status;
    MPI_Request request;
    fill(1);
    OK(MPI_File_write_at_c(file, place(), data, bytes, MPI_BYTE, &status));
    expect_bytes(&status);
    memset(data, 0, (size_t)bytes);
    OK(MPI_File_iread_at_c(file, place(), data, bytes, MPI_BYTE, &request));
    OK(MPI_Wait(&request, &status));
    expect_bytes(&status);
    check(1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/// A small count of a large type, in all directions through a collective call.
static void large_types(MPI_File file) {
    MPI_Status status;
    MPI_Datatype piece;
    const int count = (int)(bytes / kPiece);
    OK(MPI_Type_contiguous(kPiece, MPI_BYTE, &piece));
    OK(MPI_Type_commit(&piece));
    fill(2);
    OK(MPI_File_write_at_all(file, place(), data, count, piece, &status));
    expect_bytes(&status);
    expect_count(&status, piece, count);
    memset(data, 0, (size_t)bytes);
    OK(MPI_File_read_at_all(file, place(), data, count, piece, &status));
    expect_bytes(&status);
    check(2);
    OK(MPI_Type_free(&piece));
}

/// Pieces of all ranks in turn, in two phases.
static void interleaved(MPI_File file) {
    enum { kShort = 4096 };
    MPI_Status status;
    MPI_Datatype piece, row;
    OK(MPI_Type_contiguous(kShort, MPI_BYTE, &piece));
    OK(MPI_Type_create_resized(piece, 0, (MPI_Aint)kShort * size, &row));
    OK(MPI_Type_commit(&row));
    OK(MPI_File_set_view(file, 3 * GB + rank * kShort, MPI_BYTE, row, "native", MPI_INFO_NULL));
    fill(3);
    OK(MPI_File_write_all_c(file, data, bytes, MPI_BYTE, &status));
    expect_bytes(&status);
    memset(data, 0, (size_t)bytes);
    OK(MPI_File_read_at_all_c(file, 0, data, bytes, MPI_BYTE, &status));
    expect_bytes(&status);
    check(3);
    OK(MPI_Type_free(&row));
    OK(MPI_Type_free(&piece));
}

static void ordered(MPI_File file) {
    MPI_Status status;
    MPI_Offset found = -1;
    OK(MPI_File_set_view(file, START, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    fill(4);
    OK(MPI_File_write_ordered_c(file, data, bytes, MPI_BYTE, &status));
    expect_bytes(&status);
    int64_t all = 0;
    OK(MPI_Allreduce(&bytes, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_File_get_position_shared(file, &found));
    EXPECT_INT(found, all);
    memset(data, 0, (size_t)bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_ordered_c(file, data, bytes, MPI_BYTE, &status));
    expect_bytes(&status);
    check(4);
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    bytes = (rank == 0 ? 2200 : 1) * (int64_t)kPiece;
    data = malloc((size_t)bytes);
    CHECK(data, "no memory for %lld bytes", (long long)bytes);
    MPI_File file = new_file(MPI_MODE_RDWR, MPI_INFO_NULL);
    independent(file);
    large_types(file);
    OK(MPI_File_set_size(file, 0));
    interleaved(file);
    OK(MPI_File_set_size(file, 0));
    ordered(file);
    OK(MPI_File_close(&file));
    if (rank == 0) printf("calls of %lld bytes are right\n", (long long)bytes);
    free(data);
    OK(MPI_Finalize());
    return 0;
}
