// Data access by the shared pointer, collective, split and non-blocking access, atomic mode.
#include "files.h"

static int rank, size;

/// Every process appends records by the shared pointer; each record must be in the file once, undivided.
static void shared_pointer(void) {
    enum { kRecords = 20, kInts = 5 };
    MPI_File file = new_file(MPI_MODE_RDWR, MPI_INFO_NULL);
    MPI_Status status;
    MPI_Offset at = -1;
    int record[kInts];
    OK(MPI_File_set_view(file, 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int i = 0; i < kRecords; i++) {
        for (int j = 0; j < kInts; j++) record[j] = rank * 1000 + i;
        if (i % 2) {
            OK(MPI_File_write_shared(file, record, kInts, MPI_INT, &status));
        } else {
            MPI_Request request;
            OK(MPI_File_iwrite_shared(file, record, kInts, MPI_INT, &request));
            OK(MPI_Wait(&request, &status));
        }
        expect_count(&status, MPI_INT, kInts);
    }
    settle(file);
    OK(MPI_File_get_position_shared(file, &at));
    EXPECT_INT(at, size * kRecords * kInts);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    // Each process reads some of the records; together they read all.
    int seen[4 * kRecords], all[4 * kRecords];
    memset(seen, 0, sizeof seen);
    for (;;) {
        OK(MPI_File_read_shared(file, record, kInts, MPI_INT, &status));
        int count;
        OK(MPI_Get_count(&status, MPI_INT, &count));
        if (count == 0) break;
        EXPECT_INT(count, kInts);
        for (int j = 1; j < kInts; j++) EXPECT_INT(record[j], record[0]);
        seen[record[0] / 1000 * kRecords + record[0] % 1000]++;
    }
    OK(MPI_Allreduce(seen, all, size * kRecords, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < size * kRecords; i++) EXPECT_INT(all[i], 1);
    OK(MPI_File_seek_shared(file, -2, MPI_SEEK_END));
    OK(MPI_File_get_position_shared(file, &at));
    EXPECT_INT(at, size * kRecords * kInts - 2);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    // A new view sets the pointer to 0.
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_get_position_shared(file, &at));
    EXPECT_INT(at, 0);
    OK(MPI_File_close(&file));
}

/// Ordered access: parts of different lengths, one after the other in the order of ranks.
static void ordered(void) {
    MPI_File file = new_file(MPI_MODE_RDWR, MPI_INFO_NULL);
    MPI_Status status;
    MPI_Offset at = -1;
    int numbers[64], total = 0, before = 0;
    for (int r = 0; r < size; r++) {
        if (r < rank) before += r + 1;
        total += r + 1;
    }
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i <= rank; i++) numbers[i] = round * 1000 + before + i;
        if (round == 1) {
            OK(MPI_File_write_ordered_begin(file, numbers, rank + 1, MPI_INT));
            OK(MPI_File_write_ordered_end(file, numbers, &status));
        } else {
            OK(MPI_File_write_ordered(file, numbers, rank + 1, MPI_INT, &status));
        }
        expect_count(&status, MPI_INT, rank + 1);
    }
    OK(MPI_File_get_position_shared(file, &at));
    EXPECT_INT(at, 3 * total);
    settle(file);
    int* all = malloc((size_t)(3 * total) * sizeof(int));
    OK(MPI_File_read_at_all(file, 0, all, 3 * total, MPI_INT, &status));
    expect_count(&status, MPI_INT, 3 * total);
    for (int i = 0; i < 3 * total; i++) EXPECT_INT(all[i], i / total * 1000 + i % total);
    free(all);
    OK(MPI_File_seek_shared(file, total, MPI_SEEK_SET));
    OK(MPI_File_read_ordered(file, numbers, rank + 1, MPI_INT, &status));
    for (int i = 0; i <= rank; i++) EXPECT_INT(numbers[i], 1000 + before + i);
    OK(MPI_File_read_ordered_begin(file, numbers, rank + 1, MPI_INT));
    EXPECT_ERROR(MPI_File_read_all_end(file, numbers, &status), MPI_ERR_OTHER);
    EXPECT_ERROR(MPI_File_read_ordered_begin(file, numbers, rank + 1, MPI_INT), MPI_ERR_OTHER);
    OK(MPI_File_read_ordered_end(file, numbers, &status));
    for (int i = 0; i <= rank; i++) EXPECT_INT(numbers[i], 2000 + before + i);
    OK(MPI_File_close(&file));
}

/// The same data by every collective and non-blocking form, in blocks of all processes in turn.
static void all_forms(void) {
    enum { kInts = 300 };
    MPI_File file = new_file(MPI_MODE_RDWR, MPI_INFO_NULL);
    MPI_Datatype block, filetype;
    MPI_Status status, statuses[2];
    MPI_Request requests[2];
    int out[kInts], in[kInts];
    OK(MPI_Type_contiguous(3, MPI_INT, &block));
    OK(MPI_Type_create_resized(block, 0, size * 3 * (MPI_Aint)sizeof(int), &filetype));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_File_set_view(file, rank * 12, MPI_INT, filetype, "native", MPI_INFO_NULL));
    OK(MPI_Type_free(&block));
    OK(MPI_Type_free(&filetype));
    for (int form = 0; form < 7; form++) {
        for (int i = 0; i < kInts; i++) out[i] = form * 100000 + rank * 1000 + i;
        memset(in, 0xff, sizeof in);
        OK(MPI_File_seek(file, form * kInts, MPI_SEEK_SET));
        const MPI_Offset at = form * kInts;
        switch (form) {
            case 0:
                OK(MPI_File_write_all(file, out, kInts, MPI_INT, &status));
                break;
            case 1:
                OK(MPI_File_write_at_all(file, at, out, kInts, MPI_INT, &status));
                break;
            case 2:
                OK(MPI_File_iwrite_all(file, out, kInts, MPI_INT, requests));
                OK(MPI_Wait(requests, &status));
                break;
            case 3:
                OK(MPI_File_iwrite_at_all(file, at, out, kInts, MPI_INT, requests));
                OK(MPI_Wait(requests, &status));
                break;
            case 4:
                OK(MPI_File_write_all_begin(file, out, kInts, MPI_INT));
                OK(MPI_File_write_all_end(file, out, &status));
                break;
            case 5:
                OK(MPI_File_write_at_all_begin(file, at, out, kInts, MPI_INT));
                OK(MPI_File_write_at_all_end(file, out, &status));
                break;
            default:
                OK(MPI_File_iwrite(file, out, kInts / 2, MPI_INT, &requests[0]));
                OK(MPI_File_iwrite_at(file, at + kInts / 2, out + kInts / 2, kInts / 2, MPI_INT, &requests[1]));
                OK(MPI_Waitall(2, requests, statuses));
                expect_count(&statuses[1], MPI_INT, kInts / 2);
                status = statuses[0];
                MPI_Status_set_elements(&status, MPI_INT, kInts);
        }
        expect_count(&status, MPI_INT, kInts);
        OK(MPI_File_seek(file, at, MPI_SEEK_SET));
        switch (form) {
            case 0:
                OK(MPI_File_read_all(file, in, kInts, MPI_INT, &status));
                break;
            case 1:
                OK(MPI_File_read_at_all(file, at, in, kInts, MPI_INT, &status));
                break;
            case 2:
                OK(MPI_File_iread_all(file, in, kInts, MPI_INT, requests));
                OK(MPI_Wait(requests, &status));
                break;
            case 3:
                OK(MPI_File_iread_at_all(file, at, in, kInts, MPI_INT, requests));
                OK(MPI_Wait(requests, &status));
                break;
            case 4:
                OK(MPI_File_read_all_begin(file, in, kInts, MPI_INT));
                OK(MPI_File_read_all_end(file, in, &status));
                break;
            case 5:
                OK(MPI_File_read_at_all_begin(file, at, in, kInts, MPI_INT));
                OK(MPI_File_read_at_all_end(file, in, &status));
                break;
            default:
                OK(MPI_File_iread(file, in, kInts, MPI_INT, requests));
                OK(MPI_Wait(requests, &status));
        }
        expect_count(&status, MPI_INT, kInts);
        for (int i = 0; i < kInts; i++) EXPECT_INT(in[i], out[i]);
    }
    // The end of the file cuts a non-blocking read.
    settle(file);
    requests[0] = MPI_REQUEST_NULL;
    if (rank == 0) OK(MPI_File_iread_at(file, 7 * kInts - 5, in, kInts, MPI_INT, requests));
    // A file that one process cannot close stays open on all.
    EXPECT_ERROR(MPI_File_close(&file), MPI_ERR_OTHER);
    OK(MPI_Wait(requests, &status));
    if (rank == 0) expect_count(&status, MPI_INT, 5);
    EXPECT_ERROR(MPI_File_iread_at(file, -1, in, kInts, MPI_INT, requests), MPI_ERR_ARG);
    CHECK(requests[0] == MPI_REQUEST_NULL, "the request");
    OK(MPI_File_close(&file));
}

/// In atomic mode a read sees all of a write with gaps, or nothing of it.
static void atomic_mode(void) {
    enum { kInts = 2000, kRounds = 20 };
    MPI_File file = new_file(MPI_MODE_RDWR, MPI_INFO_NULL);
    MPI_Datatype filetype;
    MPI_Status status;
    static int numbers[kInts];
    int flag = 0;
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_get_atomicity(file, &flag));
    EXPECT_INT(flag, 1);
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &filetype));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_File_set_view(file, 0, MPI_INT, filetype, "native", MPI_INFO_NULL));
    OK(MPI_Type_free(&filetype));
    memset(numbers, 0, sizeof numbers);
    if (rank == 0) OK(MPI_File_write_at(file, 0, numbers, kInts, MPI_INT, &status));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int round = 1; round <= kRounds; round++) {
        MPI_Request request;
        if (rank == 0) {
            for (int i = 0; i < kInts; i++) numbers[i] = round;
            OK(MPI_File_write_at(file, 0, numbers, kInts, MPI_INT, &status));
        } else if (rank % 2) {
            OK(MPI_File_read_at(file, 0, numbers, kInts, MPI_INT, &status));
        } else {
            OK(MPI_File_iread_at(file, 0, numbers, kInts, MPI_INT, &request));
            OK(MPI_Wait(&request, &status));
        }
        expect_count(&status, MPI_INT, kInts);
        for (int i = 1; i < kInts; i++) EXPECT_INT(numbers[i], numbers[0]);
    }
    OK(MPI_File_close(&file));
}

/// A file without explicit offsets: records in sequence, and a new view at the current position.
static void sequential(void) {
    char name[256];
    MPI_File file;
    MPI_Status status;
    int number = rank;
    MPI_Offset size_now;
    new_file_name(name);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file));
    OK(MPI_File_write_shared(file, &number, 1, MPI_INT, &status));
    OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    number = 100 + rank;
    OK(MPI_File_write_ordered(file, &number, 1, MPI_INT, &status));
    settle(file);
    OK(MPI_File_get_size(file, &size_now));
    EXPECT_INT(size_now, 2 * size * 4);
    OK(MPI_File_close(&file));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_read_at(file, (size + rank) * 4, &number, 1, MPI_INT, &status));
    EXPECT_INT(number, 100 + rank);
    OK(MPI_File_close(&file));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    shared_pointer();
    ordered();
    all_forms();
    atomic_mode();
    sequential();
    OK(MPI_Finalize());
    return 0;
}
