// Collective transfers of very many short pieces at irregular places. The lists of pieces in messages between hosts are as long as the data,
// and all ranks are aggregators and members at the same time, so no process may await a message before it receives those of others.
#include "files.h"

enum { kPieces = 60000, kLongest = 7, kGap = 3 };

static int rank, size, pieces = kPieces;
static int lengths[kPieces];
static MPI_Aint offsets[kPieces];

/// Deals pieces of random lengths to the ranks in random order, the same on all ranks. Returns the bytes of this rank; `count`: its pieces.
static int64_t deal(int round, int* count) {
    uint64_t state = test_seed * 977 + (uint64_t)round;
    int64_t mine = 0;
    MPI_Aint at = 0;
    *count = 0;
    for (int i = 0; i < pieces * size && *count < pieces; ++i) {
        const int owner = random_below(&state, size), length = 1 + random_below(&state, kLongest);
        at += random_below(&state, kGap);
        if (owner == rank) {
            lengths[*count] = length;
            offsets[(*count)++] = at;
            mine += length;
        }
        at += length;
    }
    return mine;
}

static MPI_File open_file(int round) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "romio_cb_write", "enable"));
    OK(MPI_Info_set(info, "romio_cb_read", "enable"));
    OK(MPI_Info_set(info, "cb_nodes", "999"));
    OK(MPI_Info_set(info, "cb_buffer_size", round % 2 ? "4000000" : "300000"));
    MPI_File file = new_file(MPI_MODE_RDWR, info);
    OK(MPI_Info_free(&info));
    return file;
}

static void one_round(int round) {
    int count;
    const int64_t bytes = deal(round, &count);
    MPI_File file = open_file(round);
    MPI_Datatype view;
    OK(MPI_Type_create_hindexed(count, lengths, offsets, MPI_BYTE, &view));
    OK(MPI_Type_commit(&view));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, view, "native", MPI_INFO_NULL));
    unsigned char *const data = malloc((size_t)bytes + 1), *const back = malloc((size_t)bytes + 1);
    fill_bytes(data, (size_t)bytes, (uint64_t)(round * 100 + rank));
    MPI_Status status;
    for (int turn = 0; turn < 2; ++turn) {
        OK(MPI_File_write_at_all(file, 0, data, (int)bytes, MPI_BYTE, &status));
        expect_count(&status, MPI_BYTE, (int)bytes);
        memset(back, 0, (size_t)bytes);
        OK(MPI_File_read_at_all(file, 0, back, (int)bytes, MPI_BYTE, &status));
        expect_count(&status, MPI_BYTE, (int)bytes);
        const long long wrong = (long long)first_wrong_byte(back, (size_t)bytes, (uint64_t)(round * 100 + rank));
        CHECK(wrong < 0, "round %d: byte %lld", round, wrong);
    }
    free(data);
    free(back);
    OK(MPI_Type_free(&view));
    OK(MPI_File_close(&file));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    start_seed(12);
    if (getenv("TEST_FOLDER")) pieces = 3000;  // a file system in user space takes up to 0.1 ms for each piece
    for (int round = 0; round < 4; ++round) one_round(round);
    OK(MPI_Finalize());
    return 0;
}
