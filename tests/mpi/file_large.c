// A file larger than 4 GB with holes, and counts above 2^31: views, pointers and offsets beyond 32 bits in collective and independent calls.
#include "files.h"

enum { kPiece = 100, kPieces = 40 };
#define GB ((MPI_Offset)1 << 30)

static int rank, size;

/// Pieces of all ranks in turn, from a displacement beyond 4 GB on.
static void interleaved(MPI_File file, MPI_Offset displacement) {
    unsigned char out[kPiece * kPieces], in[kPiece * kPieces];
    MPI_Status status;
    MPI_Datatype piece, row;
    OK(MPI_Type_contiguous(kPiece, MPI_BYTE, &piece));
    OK(MPI_Type_create_resized(piece, 0, (MPI_Aint)kPiece * size, &row));
    OK(MPI_Type_commit(&row));
    OK(MPI_File_set_view(file, displacement + rank * kPiece, MPI_BYTE, row, "native", MPI_INFO_NULL));
    fill_bytes(out, sizeof out, (uint64_t)rank);
    OK(MPI_File_write_all(file, out, sizeof out, MPI_BYTE, &status));
    expect_count(&status, MPI_BYTE, sizeof out);
    memset(in, 0, sizeof in);
    OK(MPI_File_read_at_all(file, 0, in, sizeof in, MPI_BYTE, &status));
    CHECK(first_wrong_byte(in, sizeof in, (uint64_t)rank) < 0);
    settle(file);
    // Another rank's pieces, by a view of bytes.
    const int other = (rank + 1) % size;
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    for (int i = 0; i < kPieces; ++i) {
        const MPI_Offset at = displacement + ((MPI_Offset)i * size + other) * kPiece;
        OK(MPI_File_read_at(file, at, in + i * kPiece, kPiece, MPI_BYTE, &status));
    }
    CHECK(first_wrong_byte(in, sizeof in, (uint64_t)other) < 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Type_free(&row));
    OK(MPI_Type_free(&piece));
}

/// Blocks of 8 bytes that are 3 GB apart, in one filetype.
static void distant_blocks(MPI_File file, int together) {
    const int lengths[2] = {8, 8};
    const MPI_Aint places[2] = {16 * rank, 3 * GB + 16 * rank};
    int64_t out[4] = {rank, rank + 100, rank + 200, rank + 300}, in[4] = {0};
    MPI_Datatype blocks, filetype;
    MPI_Status status;
    MPI_Offset offset = -1;
    OK(MPI_Type_create_hindexed(2, lengths, places, MPI_BYTE, &blocks));
    OK(MPI_Type_create_resized(blocks, 0, 6 * GB, &filetype));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_File_set_view(file, 8, MPI_INT64_T, filetype, "native", MPI_INFO_NULL));
    if (together) {
        OK(MPI_File_write_at_all(file, 0, out, 4, MPI_INT64_T, &status));
        OK(MPI_File_read_at_all(file, 0, in, 4, MPI_INT64_T, &status));
    } else {
        OK(MPI_File_write(file, out, 4, MPI_INT64_T, &status));
        OK(MPI_File_seek(file, -4, MPI_SEEK_CUR));
        OK(MPI_File_read(file, in, 4, MPI_INT64_T, &status));
    }
    expect_count(&status, MPI_INT64_T, 4);
    CHECK(memcmp(in, out, sizeof in) == 0);
    OK(MPI_File_get_byte_offset(file, 3, &offset));
    EXPECT_INT(offset, 8 + 9 * GB + 16 * rank);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Type_free(&filetype));
    OK(MPI_Type_free(&blocks));
}

static void pointers(MPI_File file) {
    MPI_Offset found = -1;
    int64_t value = rank, back = -1;
    OK(MPI_File_set_view(file, GB, MPI_INT64_T, MPI_INT64_T, "native", MPI_INFO_NULL));
    OK(MPI_File_set_size(file, 7 * GB));
    OK(MPI_File_get_size(file, &found));
    EXPECT_INT(found, 7 * GB);
    OK(MPI_File_seek(file, -size, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &found));
    EXPECT_INT(found, 6 * GB / 8 - size);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_END));
    OK(MPI_File_write_ordered(file, &value, 1, MPI_INT64_T, MPI_STATUS_IGNORE));
    OK(MPI_File_get_position_shared(file, &found));
    EXPECT_INT(found, 6 * GB / 8 + size);
    OK(MPI_File_read_at(file, 6 * GB / 8 + rank, &back, 1, MPI_INT64_T, MPI_STATUS_IGNORE));
    EXPECT_INT(back, rank);
    settle(file);
    OK(MPI_File_get_size(file, &found));
    EXPECT_INT(found, 7 * GB + 8 * size);
}

/// Counts of more than 2^31 elements: of no bytes, and of one byte in a file that ends early.
static void large_counts(MPI_File file) {
    const MPI_Count count = (MPI_Count)3 * GB;
    char byte = 'x';
    MPI_Datatype nothing, same;
    MPI_Status status;
    MPI_Count found = -1;
    OK(MPI_Type_contiguous(0, MPI_BYTE, &nothing));
    OK(MPI_Type_commit(&nothing));
    OK(MPI_Type_create_resized(MPI_BYTE, 0, 0, &same));
    OK(MPI_Type_commit(&same));
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_write_at_c(file, 0, &byte, count, nothing, &status));
    OK(MPI_File_write_at_all_c(file, 0, &byte, count, nothing, &status));
    OK(MPI_Get_count_c(&status, MPI_BYTE, &found));
    EXPECT_INT(found, 0);
    OK(MPI_File_get_size(file, &found));
    EXPECT_INT(found, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) OK(MPI_File_write_at(file, 0, "0123456789", 10, MPI_BYTE, &status));
    settle(file);
    OK(MPI_File_read_at_c(file, 4, &byte, count, same, &status));
    OK(MPI_Get_count_c(&status, same, &found));
    EXPECT_INT(found, 6);
    CHECK(byte >= '4' && byte <= '9', "found '%c'", byte);  // all bytes that are read have this place
    OK(MPI_File_read_at_all_c(file, 7, &byte, count + rank, same, &status));
    OK(MPI_Get_count_c(&status, same, &found));
    EXPECT_INT(found, 3);
    EXPECT_ERROR(MPI_File_read_at(file, INT64_MAX - 3, &byte, 10, same, &status), MPI_ERR_ARG);
    OK(MPI_Type_free(&nothing));
    OK(MPI_Type_free(&same));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    MPI_File file = new_file(MPI_MODE_RDWR, MPI_INFO_NULL);
    interleaved(file, 5 * GB - 37);
    interleaved(file, 4 * GB - 1000);
    distant_blocks(file, 0);
    distant_blocks(file, 1);
    pointers(file);
    large_counts(file);
    OK(MPI_File_close(&file));
    OK(MPI_Finalize());
    return 0;
}
