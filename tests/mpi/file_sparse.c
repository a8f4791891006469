// Tests collective reads of which each rank wants a tenth of its own part of the file, through collective buffers that are much shorter than
// the parts: ranks begin in later blocks of an aggregator than others, and aggregators read only the wanted bytes.
#include <stdint.h>
#include <stdlib.h>

#include "files.h"

enum { kPart = 2000000, kPiece = 100, kStride = 1000, kPieces = kPart / kStride };

static unsigned char byte_at(int64_t offset) { return (unsigned char)(offset * 2654435761u >> 13); }

static void fill(MPI_File file, int rank) {
    unsigned char* part = malloc(kPart);
    for (int i = 0; i < kPart; i++) part[i] = byte_at((int64_t)rank * kPart + i);
    OK(MPI_File_write_at(file, (MPI_Offset)rank * kPart, part, kPart, MPI_BYTE, MPI_STATUS_IGNORE));
    free(part);
    settle(file);
}

static void read_sparsely(MPI_File file, int rank) {
    MPI_Datatype pieces;
    MPI_Status status;
    OK(MPI_Type_vector(kPieces, kPiece, kStride, MPI_BYTE, &pieces));
    OK(MPI_Type_commit(&pieces));
    OK(MPI_File_set_view(file, (MPI_Offset)rank * kPart, MPI_BYTE, pieces, "native", MPI_INFO_NULL));
    unsigned char* got = calloc(kPieces, kPiece);
    OK(MPI_File_read_at_all(file, 0, got, kPieces * kPiece, MPI_BYTE, &status));
    expect_count(&status, MPI_BYTE, kPieces * kPiece);
    for (int i = 0; i < kPieces * kPiece; i++) {
        const int64_t offset = (int64_t)rank * kPart + (int64_t)(i / kPiece) * kStride + i % kPiece;
        CHECK(got[i] == byte_at(offset), "byte %d is %d, not %d", i, got[i], byte_at(offset));
    }
    free(got);
    OK(MPI_Type_free(&pieces));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
}

int main(int argc, char** argv) {
    int rank;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    const char* const aggregators[] = {"1", "2"};
    for (int i = 0; i < 2; i++) {
        MPI_Info info;
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "romio_cb_read", "enable"));
        OK(MPI_Info_set(info, "cb_buffer_size", "65536"));
        OK(MPI_Info_set(info, "cb_nodes", aggregators[i]));
        MPI_File file = new_file(MPI_MODE_RDWR, info);
        fill(file, rank);
        for (int round = 0; round < 5; round++) read_sparsely(file, rank);
        OK(MPI_File_close(&file));
        OK(MPI_Info_free(&info));
    }
    OK(MPI_Finalize());
    return 0;
}
