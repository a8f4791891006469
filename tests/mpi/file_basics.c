// Opening, closing, sizes, pointers, views and independent access of files.
#include "files.h"

static int rank, size;

static void open_and_close(void) {
    char name[256];
    MPI_File file;
    MPI_Offset bytes = -1;
    int amode = 0, flag = 0;
    new_file_name(name);
    EXPECT_ERROR(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_get_amode(file, &amode));
    EXPECT_INT(amode, MPI_MODE_CREATE | MPI_MODE_RDWR);
    OK(MPI_File_get_size(file, &bytes));
    EXPECT_INT(bytes, 0);
    MPI_Group group, world;
    int result;
    OK(MPI_File_get_group(file, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_compare(group, world, &result));
    EXPECT_INT(result, MPI_IDENT);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
    OK(MPI_File_set_size(file, 1000));
    OK(MPI_File_get_size(file, &bytes));
    EXPECT_INT(bytes, 1000);
    OK(MPI_File_preallocate(file, 5000));
    OK(MPI_File_get_size(file, &bytes));
    EXPECT_INT(bytes, 5000);
    OK(MPI_File_preallocate(file, 10));
    OK(MPI_File_get_size(file, &bytes));
    EXPECT_INT(bytes, 5000);
    OK(MPI_File_set_size(file, 3));
    OK(MPI_File_get_size(file, &bytes));
    EXPECT_INT(bytes, 3);
    OK(MPI_File_get_atomicity(file, &flag));
    EXPECT_INT(flag, 0);
#if MPI_AT_LEAST(5, 0)
    const int number = MPI_File_toint(file);
    CHECK(MPI_File_fromint(number) == file, "the number %d", number);
#endif
    CHECK(MPI_File_f2c(MPI_File_c2f(file)) == file, "the Fortran number");
    OK(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL, "the handle");
    EXPECT_ERROR(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
                 MPI_ERR_FILE_EXISTS);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_close(&file));
    EXPECT_ERROR(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
        OK(MPI_File_close(&file));
        OK(MPI_File_delete(name, MPI_INFO_NULL));
        EXPECT_ERROR(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void explicit_offsets(void) {
    MPI_File file = new_file(MPI_MODE_RDWR, MPI_INFO_NULL);
    int out[10], in[10];
    MPI_Status status;
    for (int i = 0; i < 10; i++) out[i] = rank * 100 + i;
    OK(MPI_File_write_at(file, (MPI_Offset)(rank * sizeof out), out, 10, MPI_INT, &status));
    expect_count(&status, MPI_INT, 10);
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_sync(file));
    for (int other = 0; other < size; other++) {
        memset(in, 0xff, sizeof in);
        OK(MPI_File_read_at(file, (MPI_Offset)(other * sizeof in), in, 10, MPI_INT, &status));
        expect_count(&status, MPI_INT, 10);
        for (int i = 0; i < 10; i++) EXPECT_INT(in[i], other * 100 + i);
    }
    // the last 3 numbers of the file
    OK(MPI_File_read_at(file, (MPI_Offset)(size * sizeof in) - 12, in, 10, MPI_INT, &status));
    expect_count(&status, MPI_INT, 3);
    OK(MPI_File_read_at(file, (MPI_Offset)(size * sizeof in) - 6, in, 10, MPI_INT, &status));
    expect_count(&status, MPI_INT, MPI_UNDEFINED);
    OK(MPI_File_read_at(file, 1 << 20, in, 10, MPI_INT, &status));
    expect_count(&status, MPI_INT, 0);
    OK(MPI_File_close(&file));
}

static void pointers(void) {
    MPI_File file = new_file(MPI_MODE_RDWR, MPI_INFO_NULL);
    MPI_Offset at = -1;
    MPI_Status status;
    int out[4] = {1, 2, 3, 4}, in[8];
    OK(MPI_File_set_view(file, rank * 100, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_get_position(file, &at));
    EXPECT_INT(at, 0);
    OK(MPI_File_write(file, out, 4, MPI_INT, &status));
    OK(MPI_File_get_position(file, &at));
    EXPECT_INT(at, 4);
    OK(MPI_File_seek(file, -3, MPI_SEEK_CUR));
    OK(MPI_File_get_position(file, &at));
    EXPECT_INT(at, 1);
    OK(MPI_File_get_byte_offset(file, at, &at));
    EXPECT_INT(at, rank * 100 + 4);
    OK(MPI_File_read(file, in, 2, MPI_INT, &status));
    EXPECT_INT(in[0], 2);
    EXPECT_INT(in[1], 3);
    EXPECT_ERROR(MPI_File_seek(file, -100, MPI_SEEK_CUR), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_File_seek(file, 0, 77), MPI_ERR_ARG);
    OK(MPI_File_get_position(file, &at));
    EXPECT_INT(at, 3);
    settle(file);
    OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &at));
    EXPECT_INT(at, ((size - 1 - rank) * 100 + 16) / 4);
    OK(MPI_File_seek(file, -1, MPI_SEEK_END));
    OK(MPI_File_read(file, in, 8, MPI_INT, &status));
    expect_count(&status, MPI_INT, 1);
    EXPECT_INT(in[0], 4);
    OK(MPI_File_get_position(file, &at));
    EXPECT_INT(at, ((size - 1 - rank) * 100 + 16) / 4);
    OK(MPI_File_close(&file));
}

/// Each process sees every size-th int.
static void views(void) {
    MPI_File file = new_file(MPI_MODE_RDWR, MPI_INFO_NULL);
    MPI_Datatype one, filetype, etype, type;
    MPI_Offset disp = -1;
    MPI_Status status;
    char name[MPI_MAX_DATAREP_STRING];
    enum { kCount = 50 };
    int numbers[2 * kCount], all[4 * kCount];
    OK(MPI_Type_create_resized(MPI_INT, 0, size * (MPI_Aint)sizeof(int), &one));
    OK(MPI_Type_dup(one, &filetype));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_File_set_view(file, 8 + rank * 4, MPI_INT, filetype, "native", MPI_INFO_NULL));
    OK(MPI_Type_free(&one));
    OK(MPI_Type_free(&filetype));
    OK(MPI_File_get_view(file, &disp, &etype, &type, name));
    EXPECT_INT(disp, 8 + rank * 4);
    CHECK(etype == MPI_INT && strcmp(name, "native") == 0, "the view is %s", name);
    MPI_Aint lb, extent;
    OK(MPI_Type_get_extent(type, &lb, &extent));
    EXPECT_INT(extent, size * 4);
    OK(MPI_Type_free(&type));
    // Memory with gaps: every second int.
    for (int i = 0; i < 2 * kCount; i++) numbers[i] = i % 2 ? -1 : (i / 2) * size + rank;
    OK(MPI_Type_vector(kCount, 1, 2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_File_write(file, numbers, 1, type, &status));
    expect_count(&status, MPI_INT, kCount);
    settle(file);
    memset(numbers, 0xff, sizeof numbers);
    OK(MPI_File_read_at(file, 0, numbers, 1, type, &status));
    expect_count(&status, type, 1);
    for (int i = 0; i < 2 * kCount; i++) EXPECT_INT(numbers[i], i % 2 ? -1 : (i / 2) * size + rank);
    OK(MPI_Type_free(&type));
    OK(MPI_File_get_byte_offset(file, 3, &disp));
    EXPECT_INT(disp, 8 + rank * 4 + 3 * size * 4);
    OK(MPI_File_set_view(file, 8, MPI_INT, MPI_INT, "internal", MPI_INFO_NULL));
    OK(MPI_File_get_view(file, &disp, &etype, &type, name));
    CHECK(strcmp(name, "internal") == 0, "the view is %s", name);
    OK(MPI_File_read_at(file, 0, all, kCount * size, MPI_INT, &status));
    expect_count(&status, MPI_INT, kCount * size);
    for (int i = 0; i < kCount * size; i++) EXPECT_INT(all[i], i);
    OK(MPI_File_close(&file));
}

/// Errors on every process.
static void errors(void) {
    char name[256];
    MPI_File file = (MPI_File)0;
    MPI_Status status;
    MPI_Offset offset;
    int number = 0;
    new_file_name(name);
    EXPECT_ERROR(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    CHECK(file == MPI_FILE_NULL, "the handle");
    EXPECT_ERROR(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    EXPECT_ERROR(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    EXPECT_ERROR(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_WRONLY, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    EXPECT_ERROR(MPI_File_open(MPI_COMM_NULL, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_COMM);
    EXPECT_ERROR(MPI_File_close(&file), MPI_ERR_FILE);
    EXPECT_ERROR(MPI_File_read(MPI_FILE_NULL, &number, 1, MPI_INT, &status), MPI_ERR_FILE);
    EXPECT_ERROR(MPI_File_get_size(MPI_FILE_NULL, &offset), MPI_ERR_FILE);

    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    EXPECT_ERROR(MPI_File_read(file, &number, 1, MPI_INT, &status), MPI_ERR_ACCESS);
    EXPECT_ERROR(MPI_File_write_at(file, -1, &number, 1, MPI_INT, &status), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_File_write_at(file, INT64_MAX - 1, &number, 1, MPI_INT, &status), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_File_write(file, &number, -1, MPI_INT, &status), MPI_ERR_COUNT);
    EXPECT_ERROR(MPI_File_write(file, NULL, 1, MPI_INT, &status), MPI_ERR_BUFFER);
    EXPECT_ERROR(MPI_File_write(file, &number, 1, MPI_DATATYPE_NULL, &status), MPI_ERR_TYPE);
    EXPECT_ERROR(MPI_File_set_view(file, 0, MPI_INT, MPI_SHORT, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    EXPECT_ERROR(MPI_File_set_view(file, -5, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "unheard of", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
    EXPECT_ERROR(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    EXPECT_ERROR(MPI_File_write(file, &number, 1, MPI_SHORT, &status), MPI_ERR_TYPE);
    EXPECT_ERROR(MPI_File_set_size(file, -1), MPI_ERR_ARG);
    OK(MPI_File_close(&file));

    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    EXPECT_ERROR(MPI_File_write(file, &number, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
    EXPECT_ERROR(MPI_File_set_size(file, 10), MPI_ERR_READ_ONLY);
    OK(MPI_File_close(&file));

    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                     &file));
    EXPECT_ERROR(MPI_File_read(file, &number, 1, MPI_INT, &status), MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT_ERROR(MPI_File_read_at(file, 0, &number, 1, MPI_INT, &status), MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT_ERROR(MPI_File_seek(file, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
    OK(MPI_File_close(&file));
}

static int iwrite_at_all(MPI_File file, MPI_Offset at, void* data, int count, MPI_Datatype type, MPI_Request* request) {
    return MPI_File_iwrite_at_all(file, at, data, count, type, request);
}

/// Arguments that are wrong or different on one process: all get an error.
static void errors_on_one(void) {
    char name[256];
    MPI_File file = (MPI_File)0;
    if (size == 1) return;
    new_file_name(name);
    const int odd = rank == size - 1;
    EXPECT_ERROR(
        MPI_File_open(MPI_COMM_WORLD, name, odd ? MPI_MODE_CREATE : MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
        MPI_ERR_AMODE);
    EXPECT_ERROR(
        MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | (odd ? MPI_MODE_WRONLY : MPI_MODE_RDWR), MPI_INFO_NULL, &file),
        MPI_ERR_NOT_SAME);
    // Only some members ask for a file that may be created, and removed again.
    EXPECT_ERROR(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | (odd ? 0 : MPI_MODE_CREATE), MPI_INFO_NULL, &file),
                 MPI_ERR_NOT_SAME);
    if (rank == 0) CHECK(access(name, F_OK) != 0, "the open that failed left a file");
    EXPECT_ERROR(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | (odd ? MPI_MODE_CREATE : 0), MPI_INFO_NULL, &file),
                 MPI_ERR_NO_SUCH_FILE);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    char other[300];
    snprintf(other, sizeof other, "%s_other", name);
    MPI_File second = (MPI_File)0;
    if (odd) OK(MPI_File_open(MPI_COMM_SELF, other, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &second));
    if (odd) OK(MPI_File_close(&second));
    EXPECT_ERROR(MPI_File_open(MPI_COMM_WORLD, odd ? other : name, MPI_MODE_RDWR, MPI_INFO_NULL, &second), MPI_ERR_NOT_SAME);
    if (odd) OK(MPI_File_delete(other, MPI_INFO_NULL));
    // Between hosts the names are compared, and not the files.
    if (on_one_host())
        EXPECT_ERROR(MPI_File_open(MPI_COMM_WORLD, odd ? other : name, MPI_MODE_RDWR, MPI_INFO_NULL, &second),
                     MPI_ERR_NO_SUCH_FILE);
    EXPECT_ERROR(MPI_File_set_size(file, odd ? 5 : 6), MPI_ERR_NOT_SAME);
    EXPECT_ERROR(MPI_File_set_size(file, odd ? -5 : 6), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_File_set_atomicity(file, odd), MPI_ERR_NOT_SAME);
    EXPECT_ERROR(MPI_File_set_view(file, 0, odd ? MPI_INT : MPI_DOUBLE, odd ? MPI_INT : MPI_DOUBLE, "native", MPI_INFO_NULL),
                 MPI_ERR_NOT_SAME);
    EXPECT_ERROR(MPI_File_set_view(file, 0, MPI_INT, odd ? MPI_DATATYPE_NULL : MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    EXPECT_ERROR(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, odd ? "native" : "internal", MPI_INFO_NULL), MPI_ERR_NOT_SAME);
    int number = 1;
    MPI_Status status;
    MPI_Request request;
    EXPECT_ERROR(MPI_File_write_all(file, &number, odd ? -1 : 1, MPI_INT, &status), MPI_ERR_COUNT);
    EXPECT_ERROR(MPI_File_read_at_all(file, odd ? -1 : 1, &number, 1, MPI_INT, &status), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_File_write_ordered(file, &number, 1, odd ? MPI_DATATYPE_NULL : MPI_INT, &status), MPI_ERR_TYPE);
    OK(MPI_File_iwrite_all(file, &number, odd ? -1 : 1, MPI_INT, &request));
    EXPECT_ERROR(MPI_Wait(&request, &status), MPI_ERR_COUNT);
    // A rank without a place for the request gets the error at once.
    int (*const calls[])(MPI_File, MPI_Offset, void*, int, MPI_Datatype, MPI_Request*) = {MPI_File_iread_at_all, iwrite_at_all};
    for (int i = 0; i < 2; ++i) {
        if (odd) {
            EXPECT_ERROR(calls[i](file, 0, &number, 1, MPI_INT, NULL), MPI_ERR_ARG);
        } else {
            OK(calls[i](file, 0, &number, 1, MPI_INT, &request));
            EXPECT_ERROR(MPI_Wait(&request, &status), MPI_ERR_ARG);
        }
    }
    OK(MPI_File_write_all_begin(file, &number, odd ? -1 : 1, MPI_INT));
    EXPECT_ERROR(MPI_File_write_all_end(file, &number, &status), MPI_ERR_COUNT);
    EXPECT_ERROR(MPI_File_seek_shared(file, odd, MPI_SEEK_SET), MPI_ERR_NOT_SAME);
    OK(MPI_File_close(&file));
    if (rank == 0) OK(MPI_File_delete(name, MPI_INFO_NULL));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/// Changes the view while writes are in progress: each write uses the view that it was started with.
static void view_during_writes(void) {
    enum { kWrites = 4, kInts = 1000 };
    MPI_File file = new_file(MPI_MODE_RDWR, MPI_INFO_NULL);
    MPI_Request requests[kWrites];
    static int numbers[kWrites][kInts];
    int first = -1;
    for (int i = 0; i < kWrites; i++) {
        const MPI_Offset start = (MPI_Offset)(i * size + rank) * (MPI_Offset)sizeof numbers[i];
        for (int k = 0; k < kInts; k++) numbers[i][k] = (i * size + rank) * kInts + k;
        OK(MPI_File_set_view(file, start, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
        if (i % 2)
            OK(MPI_File_iwrite_at(file, 0, numbers[i], kInts, MPI_INT, &requests[i]));
        else
            OK(MPI_File_iwrite_at_all(file, 0, numbers[i], kInts, MPI_INT, &requests[i]));
    }
    OK(MPI_Waitall(kWrites, requests, MPI_STATUSES_IGNORE));
    settle(file);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int i = 0; i < kWrites * size; i++) {
        OK(MPI_File_read_at(file, (MPI_Offset)i * kInts + 7, &first, 1, MPI_INT, MPI_STATUS_IGNORE));
        EXPECT_INT(first, i * kInts + 7);
    }
    OK(MPI_File_close(&file));
}

static void append(void) {
    char name[256];
    MPI_File file;
    MPI_Offset at;
    new_file_name(name);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_set_size(file, 17));
    OK(MPI_File_close(&file));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_APPEND | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_get_position(file, &at));
    EXPECT_INT(at, 17);
    OK(MPI_File_get_position_shared(file, &at));
    EXPECT_INT(at, 17);
    OK(MPI_File_close(&file));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    open_and_close();
    explicit_offsets();
    pointers();
    views();
    view_during_writes();
    errors();
    errors_on_one();
    append();
    OK(MPI_Finalize());
    return 0;
}
