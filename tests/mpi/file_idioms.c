// Short programs of the kinds that tutorials, checkpoints and libraries above MPI-IO contain, each on one idea. The standard decides what each
// must find; a difference is one line. With arguments, only the programs with these names run.
#include <mpi.h>
#include <stdarg.h>
#include <unistd.h>

#include "files.h"

static int rank, size, differences;
static const char* idiom;
static char name[256];

static void __attribute__((format(printf, 2, 3))) differ(int line, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s:%d rank %d: ", idiom, line, rank);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    ++differences;
}

#define SAME(value, wanted)                                                                       \
    do {                                                                                          \
        const long long value_ = (long long)(value), wanted_ = (long long)(wanted);               \
        if (value_ != wanted_) differ(__LINE__, #value " is %lld, wanted %lld", value_, wanted_); \
    } while (0)
#define CLASS(call, wanted)                                                                       \
    do {                                                                                          \
        const int code_ = (call);                                                                 \
        int class_ = MPI_SUCCESS;                                                                 \
        if (code_ != MPI_SUCCESS) MPI_Error_class(code_, &class_);                                \
        if (class_ != (wanted)) differ(__LINE__, #call " has class %d, wanted " #wanted, class_); \
    } while (0)
#define DO(call) CLASS(call, MPI_SUCCESS)

static MPI_File create(int amode) {
    MPI_File file = MPI_FILE_NULL;
    new_file_name(name);
    DO(MPI_File_open(MPI_COMM_WORLD, name, amode | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    return file;
}
static void destroy(MPI_File* file) {
    DO(MPI_File_close(file));
    SAME(*file == MPI_FILE_NULL, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) DO(MPI_File_delete(name, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
}
static int count_of(const MPI_Status* status, MPI_Datatype type) {
    int count = -2;
    MPI_Get_count(status, type, &count);
    return count;
}
static void sync_all(MPI_File file) {
    DO(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    DO(MPI_File_sync(file));
}

/// A matrix of rows by rank, with ghost cells in memory, written by subarrays and read as one.
static void subarray_checkpoint(void) {
    enum { kRows = 4, kColumns = 6 };
    const int all[2] = {kRows * size, kColumns}, mine[2] = {kRows, kColumns}, start[2] = {kRows * rank, 0};
    const int ghosts[2] = {kRows + 2, kColumns + 2}, inner[2] = {1, 1};
    int cells[(kRows + 2) * (kColumns + 2)], whole[kColumns];
    MPI_Datatype filetype, memory;
    MPI_Status status;
    MPI_Type_create_subarray(2, all, mine, start, MPI_ORDER_C, MPI_INT, &filetype);
    MPI_Type_create_subarray(2, ghosts, mine, inner, MPI_ORDER_C, MPI_INT, &memory);
    MPI_Type_commit(&filetype);
    MPI_Type_commit(&memory);
    for (int i = 0; i < kRows + 2; ++i)
        for (int j = 0; j < kColumns + 2; ++j) cells[i * (kColumns + 2) + j] = (rank * kRows + i - 1) * kColumns + j - 1;
    MPI_File file = create(MPI_MODE_RDWR);
    DO(MPI_File_set_view(file, 12, MPI_INT, filetype, "native", MPI_INFO_NULL));
    DO(MPI_File_write_all(file, cells, 1, memory, &status));
    SAME(count_of(&status, memory), 1);
    SAME(count_of(&status, MPI_INT), kRows * kColumns);
    sync_all(file);
    DO(MPI_File_set_view(file, 12, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int row = 0; row < kRows * size; ++row) {
        DO(MPI_File_read(file, whole, kColumns, MPI_INT, &status));
        for (int j = 0; j < kColumns; ++j) SAME(whole[j], row * kColumns + j);
    }
    destroy(&file);
    MPI_Type_free(&filetype);
    MPI_Type_free(&memory);
}

/// A vector that is dealt to the ranks in blocks of two.
static void block_cyclic_darray(void) {
    const int length = 4 * size + 1;
    int distribution = MPI_DISTRIBUTE_CYCLIC, block = 2, mine[8], moved = 0;
    MPI_Datatype filetype;
    MPI_Status status;
    MPI_Type_create_darray(size, rank, 1, &length, &distribution, &block, &size, MPI_ORDER_C, MPI_INT, &filetype);
    MPI_Type_commit(&filetype);
    MPI_Type_size(filetype, &moved);
    moved /= 4;
    for (int i = 0; i < moved; ++i) mine[i] = 100 * rank + i;
    MPI_File file = create(MPI_MODE_RDWR);
    DO(MPI_File_set_view(file, 0, MPI_INT, filetype, "native", MPI_INFO_NULL));
    DO(MPI_File_write_all(file, mine, moved, MPI_INT, &status));
    sync_all(file);
    DO(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int i = 0; i < length; ++i) {
        int value = -1;
        DO(MPI_File_read_at(file, i, &value, 1, MPI_INT, &status));
        SAME(value, 100 * (i / 2 % size) + i / (2 * size) * 2 + i % 2);
    }
    destroy(&file);
    MPI_Type_free(&filetype);
}

static void shared_pointer(void) {
    MPI_Offset at = -1;
    MPI_Status status;
    int value = rank, sum = 0, one = -1;
    MPI_File file = create(MPI_MODE_RDWR);
    DO(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    DO(MPI_File_write_shared(file, &value, 1, MPI_INT, &status));
    SAME(count_of(&status, MPI_INT), 1);
    MPI_Barrier(MPI_COMM_WORLD);
    DO(MPI_File_get_position_shared(file, &at));
    SAME(at, size);
    sync_all(file);
    DO(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    MPI_Request request;
    DO(MPI_File_iread_shared(file, &one, 1, MPI_INT, &request));
    MPI_Wait(&request, &status);
    SAME(count_of(&status, MPI_INT), 1);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    SAME(sum, size * (size - 1) / 2);
    DO(MPI_File_seek_shared(file, -1, MPI_SEEK_END));
    DO(MPI_File_get_position_shared(file, &at));
    SAME(at, size - 1);
    MPI_Barrier(MPI_COMM_WORLD);
    DO(MPI_File_seek_shared(file, -(size - 1), MPI_SEEK_CUR));
    DO(MPI_File_get_position_shared(file, &at));
    SAME(at, 0);
    CLASS(MPI_File_seek_shared(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    DO(MPI_File_get_position(file, &at));
    SAME(at, 0);
    destroy(&file);
}

static void byte_offsets(void) {
    const int lengths[2] = {1, 2}, places[2] = {1, 4};
    MPI_Datatype blocks, filetype;
    MPI_Offset at = -1;
    MPI_Type_indexed(2, lengths, places, MPI_INT, &blocks);
    MPI_Type_create_resized(blocks, 0, 32, &filetype);
    MPI_Type_commit(&filetype);
    MPI_File file = create(MPI_MODE_RDWR);
    DO(MPI_File_set_view(file, 5, MPI_INT, filetype, "native", MPI_INFO_NULL));
    const int wanted[] = {4, 16, 20, 36, 48, 52, 68};
    for (int i = 0; i < 7; ++i) {
        DO(MPI_File_get_byte_offset(file, i, &at));
        SAME(at, 5 + wanted[i]);
    }
    destroy(&file);
    MPI_Type_free(&blocks);
    MPI_Type_free(&filetype);
}

/// A log of lines of different lengths in the order of ranks.
static void ordered_log(void) {
    char line[64], found[64];
    MPI_Offset at = 0;
    MPI_File file = create(MPI_MODE_RDWR);
    for (int turn = 0; turn < 3; ++turn) {
        const int length = snprintf(line, sizeof line, "%*srank %d turn %d\n", rank % 3, "", rank, turn);
        DO(MPI_File_write_ordered(file, line, length, MPI_CHAR, MPI_STATUS_IGNORE));
    }
    sync_all(file);
    for (int turn = 0; turn < 3; ++turn)
        for (int r = 0; r < size; ++r) {
            const int length = snprintf(line, sizeof line, "%*srank %d turn %d\n", r % 3, "", r, turn);
            DO(MPI_File_read_at(file, at, found, length, MPI_CHAR, MPI_STATUS_IGNORE));
            SAME(memcmp(line, found, (size_t)length), 0);
            at += length;
        }
    destroy(&file);
}

static void append_mode(void) {
    MPI_Offset at = -1;
    MPI_File file = create(MPI_MODE_WRONLY);
    DO(MPI_File_set_size(file, 10));
    DO(MPI_File_close(&file));
    DO(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_APPEND, MPI_INFO_NULL, &file));
    DO(MPI_File_get_position(file, &at));
    SAME(at, 10);
    DO(MPI_File_get_position_shared(file, &at));
    SAME(at, 10);
    MPI_Barrier(MPI_COMM_WORLD);
    DO(MPI_File_write_ordered(file, "ab", 2, MPI_CHAR, MPI_STATUS_IGNORE));
    sync_all(file);
    DO(MPI_File_get_size(file, &at));
    SAME(at, 10 + 2 * size);
    DO(MPI_File_set_view(file, 2, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL));
    DO(MPI_File_get_position(file, &at));
    SAME(at, 0);
    DO(MPI_File_get_position_shared(file, &at));
    SAME(at, 0);
    destroy(&file);
}

static void end_of_file(void) {
    int values[8] = {0, 1, 2, 3, 4, 5, 6, 7}, found[8];
    MPI_Offset at = -1;
    MPI_Status status;
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_File file = create(MPI_MODE_RDWR);
    DO(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    if (rank == 0) DO(MPI_File_write(file, values, 5, MPI_INT, &status));
    sync_all(file);
    DO(MPI_File_seek(file, 2, MPI_SEEK_SET));
    memset(found, 0x77, sizeof found);
    DO(MPI_File_read(file, found, 8, MPI_INT, &status));
    SAME(count_of(&status, MPI_INT), 3);
    SAME(found[2], 4);
    SAME(found[3], 0x77777777);
    DO(MPI_File_get_position(file, &at));
    SAME(at, 5);
    DO(MPI_File_read(file, found, 8, MPI_INT, &status));
    SAME(count_of(&status, MPI_INT), 0);
    DO(MPI_File_read_at_all(file, 2, found, 3, pair, &status));
    int elements = -1;
    MPI_Get_elements(&status, pair, &elements);
    SAME(elements, 3);
    SAME(count_of(&status, pair), MPI_UNDEFINED);
    DO(MPI_File_read_at_all(file, rank == 0 ? 1 : 100, found, 2, MPI_INT, &status));
    SAME(count_of(&status, MPI_INT), rank == 0 ? 2 : 0);
    MPI_Request request;
    DO(MPI_File_iread_at(file, 4, found, 4, MPI_INT, &request));
    MPI_Wait(&request, &status);
    SAME(count_of(&status, MPI_INT), 1);
    destroy(&file);
    MPI_Type_free(&pair);
}

static void views_back(void) {
    MPI_Offset displacement = -1;
    MPI_Datatype etype, filetype, vector;
    char datarep[MPI_MAX_DATAREP_STRING] = "";
    MPI_Aint lower = -1, extent = -1;
    int bytes = -1;
    MPI_File file = create(MPI_MODE_RDWR);
    DO(MPI_File_get_view(file, &displacement, &etype, &filetype, datarep));
    SAME(displacement, 0);
    SAME(etype == MPI_BYTE, 1);
    SAME(filetype == MPI_BYTE, 1);
    SAME(strcmp(datarep, "native"), 0);
    MPI_Type_vector(3, 2, 5, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    DO(MPI_File_set_view(file, 77, MPI_INT, vector, "native", MPI_INFO_NULL));
    MPI_Type_free(&vector);
    DO(MPI_File_get_view(file, &displacement, &etype, &filetype, datarep));
    SAME(displacement, 77);
    SAME(etype == MPI_INT, 1);
    MPI_Type_size(filetype, &bytes);
    SAME(bytes, 24);
    MPI_Type_get_extent(filetype, &lower, &extent);
    SAME(lower, 0);
    SAME(extent, 48);
    MPI_Type_free(&filetype);
    destroy(&file);
}

static void access_modes(void) {
    static const int wrong[] = {0,
                                MPI_MODE_CREATE,
                                MPI_MODE_RDONLY | MPI_MODE_WRONLY,
                                MPI_MODE_RDWR | MPI_MODE_RDONLY,
                                MPI_MODE_RDONLY | MPI_MODE_CREATE,
                                MPI_MODE_RDONLY | MPI_MODE_EXCL,
                                MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL};
    MPI_File file = MPI_FILE_NULL;
    new_file_name(name);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i)
        CLASS(MPI_File_open(MPI_COMM_WORLD, name, wrong[i], MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    CLASS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    CLASS(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    MPI_Barrier(MPI_COMM_WORLD);
    DO(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_UNIQUE_OPEN,
                     MPI_INFO_NULL, &file));
    int amode = 0;
    char byte = 0;
    DO(MPI_File_get_amode(file, &amode));
    SAME(amode, MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_UNIQUE_OPEN);
    CLASS(MPI_File_read(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
    DO(MPI_File_close(&file));
    CLASS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_INFO_NULL, &file),
          MPI_ERR_FILE_EXISTS);
    DO(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    CLASS(MPI_File_write(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
    CLASS(MPI_File_write_at_all(file, 0, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
    CLASS(MPI_File_set_size(file, 10), MPI_ERR_READ_ONLY);
    destroy(&file);
}

static void wrong_arguments(void) {
    int values[4] = {0};
    MPI_Datatype three;
    MPI_Offset at = -1;
    MPI_Type_contiguous(3, MPI_BYTE, &three);
    MPI_File file = create(MPI_MODE_RDWR);
    CLASS(MPI_File_seek(file, 0, 12345), MPI_ERR_ARG);
    CLASS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    CLASS(MPI_File_write_at(file, -5, values, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    CLASS(MPI_File_write(file, values, -1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_COUNT);
    CLASS(MPI_File_write(file, values, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
    CLASS(MPI_File_write(file, values, 1, three, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
    MPI_Type_commit(&three);
    CLASS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "no such representation", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
    CLASS(MPI_File_set_view(file, -7, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    CLASS(MPI_File_set_size(file, -1), MPI_ERR_ARG);
    CLASS(MPI_File_preallocate(file, -1), MPI_ERR_ARG);
    CLASS(MPI_File_get_byte_offset(file, -1, &at), MPI_ERR_ARG);
    destroy(&file);
    CLASS(MPI_File_close(&file), MPI_ERR_FILE);
    CLASS(MPI_File_get_size(MPI_FILE_NULL, &at), MPI_ERR_FILE);
    MPI_Type_free(&three);
}

static int handled, handled_null;
static void handler(MPI_File* file, int* error, ...) {
    (void)error;
    ++handled;
    handled_null += *file == MPI_FILE_NULL;
}

static void error_handlers(void) {
    MPI_Errhandler mine, found, before;
    MPI_File file = MPI_FILE_NULL;
    DO(MPI_File_get_errhandler(MPI_FILE_NULL, &before));
    SAME(before == MPI_ERRORS_RETURN, 1);
    MPI_File_create_errhandler(handler, &mine);
    DO(MPI_File_set_errhandler(MPI_FILE_NULL, mine));
    new_file_name(name);
    CLASS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    SAME(handled, 1);
    SAME(handled_null, 1);
    file = create(MPI_MODE_RDWR);
    DO(MPI_File_get_errhandler(file, &found));
    SAME(found == mine, 1);
    MPI_Errhandler_free(&found);
    CLASS(MPI_File_seek(file, 0, 12345), MPI_ERR_ARG);
    SAME(handled, 2);
    SAME(handled_null, 1);
    DO(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
    CLASS(MPI_File_seek(file, 0, 12345), MPI_ERR_ARG);
    SAME(handled, 2);
    DO(MPI_File_set_errhandler(file, mine));
    DO(MPI_File_call_errhandler(file, MPI_ERR_OTHER));
    SAME(handled, 3);
    DO(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    MPI_Errhandler_free(&mine);
    destroy(&file);
}

static void prefixes_and_hints(void) {
    char with_prefix[300], value[MPI_MAX_INFO_VAL + 1] = "";
    int found = 0;
    MPI_Info info, used;
    MPI_File file = MPI_FILE_NULL;
    new_file_name(name);
    snprintf(with_prefix, sizeof with_prefix, "ufs:%s", name);
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_nodes", "1");
    MPI_Info_set(info, "cb_buffer_size", "65536");
    MPI_Info_set(info, "no_such_hint", "17");
    MPI_Info_set(info, "access_style", "write_once,random");
    DO(MPI_File_open(MPI_COMM_WORLD, with_prefix, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file));
    SAME(access(name, F_OK), 0);
    DO(MPI_File_get_info(file, &used));
    MPI_Info_get(used, "cb_buffer_size", MPI_MAX_INFO_VAL, value, &found);
    SAME(found && strcmp(value, "65536") == 0, 1);
    MPI_Info_free(&used);
    MPI_Info_set(info, "cb_buffer_size", "131072");
    DO(MPI_File_set_info(file, info));
    MPI_Info_free(&info);
    DO(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) DO(MPI_File_delete(with_prefix, MPI_INFO_NULL));
    if (rank == 0) SAME(access(name, F_OK), -1);
}

static void groups_and_handles(void) {
    MPI_Group world, mine;
    int result = -1;
    MPI_Comm half;
    MPI_File file = create(MPI_MODE_RDWR), own;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    DO(MPI_File_get_group(file, &mine));
    MPI_Group_compare(world, mine, &result);
    SAME(result, MPI_IDENT);
    SAME(MPI_File_f2c(MPI_File_c2f(file)) == file, 1);
    MPI_Group_free(&world);
    MPI_Group_free(&mine);
    // Parts of the processes open the file again.
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    DO(MPI_File_open(half, name, MPI_MODE_WRONLY, MPI_INFO_NULL, &own));
    DO(MPI_File_write_at_all(own, rank, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz" + rank,
                             1, MPI_CHAR, MPI_STATUS_IGNORE));
    DO(MPI_File_close(&own));
    MPI_Comm_free(&half);
    DO(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &own));
    MPI_Barrier(MPI_COMM_WORLD);
    char byte = 0;
    DO(MPI_File_sync(file));
    DO(MPI_File_close(&own));
    DO(MPI_File_read_at(file, size - 1, &byte, 1, MPI_CHAR, MPI_STATUS_IGNORE));
    SAME(byte, 'a' + (size - 1) % 26);
    destroy(&file);
}

static void sizes(void) {
    MPI_Offset bytes = -1;
    char data[4] = "abc";
    MPI_File file = create(MPI_MODE_RDWR);
    DO(MPI_File_set_size(file, 100));
    DO(MPI_File_get_size(file, &bytes));
    SAME(bytes, 100);
    MPI_Barrier(MPI_COMM_WORLD);
    DO(MPI_File_preallocate(file, 50));
    DO(MPI_File_get_size(file, &bytes));
    SAME(bytes, 100);
    MPI_Barrier(MPI_COMM_WORLD);
    DO(MPI_File_preallocate(file, 200));
    DO(MPI_File_get_size(file, &bytes));
    SAME(bytes, 200);
    DO(MPI_File_read_at(file, 150, data, 3, MPI_CHAR, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    DO(MPI_File_set_size(file, 3));
    DO(MPI_File_get_size(file, &bytes));
    SAME(bytes, 3);
    destroy(&file);
}

static void many_at_once(void) {
    enum { kRequests = 16 };
    int values[kRequests], found[kRequests];
    MPI_Request requests[kRequests];
    MPI_Status statuses[kRequests];
    MPI_File file = create(MPI_MODE_RDWR);
    DO(MPI_File_set_view(file, 4 * kRequests * rank, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int i = 0; i < kRequests; ++i) {
        values[i] = rank * 1000 + i;
        if (i % 2)
            DO(MPI_File_iwrite_at(file, i, &values[i], 1, MPI_INT, &requests[i]));
        else
            DO(MPI_File_seek(file, i, MPI_SEEK_SET) || MPI_File_iwrite(file, &values[i], 1, MPI_INT, &requests[i]));
    }
    DO(MPI_Waitall(kRequests, requests, statuses));
    SAME(count_of(&statuses[3], MPI_INT), 1);
    for (int i = 0; i < kRequests; ++i) DO(MPI_File_iread_at(file, kRequests - 1 - i, &found[i], 1, MPI_INT, &requests[i]));
    DO(MPI_Waitall(kRequests, requests, statuses));
    for (int i = 0; i < kRequests; ++i) SAME(found[i], values[kRequests - 1 - i]);
    DO(MPI_File_iwrite_all(file, values, kRequests, MPI_INT, &requests[0]));
    DO(MPI_Wait(&requests[0], &statuses[0]));
    SAME(count_of(&statuses[0], MPI_INT), kRequests);
    destroy(&file);
}

static void split_collective(void) {
    int values[10], found[10], other = -1, flag = 0;
    MPI_Status status;
    MPI_File file = create(MPI_MODE_RDWR);
    for (int i = 0; i < 10; ++i) values[i] = rank * 10 + i;
    DO(MPI_File_write_at_all_begin(file, 40 * rank, values, 10, MPI_INT));
    DO(MPI_File_get_atomicity(file, &flag));
    // Independent accesses may lie between the two parts; a second split operation may not.
    DO(MPI_File_write_at(file, 40 * size + 4 * rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    DO(MPI_File_write_at_all_end(file, values, &status));
    SAME(count_of(&status, MPI_INT), 10);
    DO(MPI_File_read_at(file, 40 * size + 4 * rank, &other, 1, MPI_INT, MPI_STATUS_IGNORE));
    SAME(other, rank);
    DO(MPI_File_seek(file, 40 * rank, MPI_SEEK_SET));
    DO(MPI_File_read_all_begin(file, found, 10, MPI_INT));
    DO(MPI_File_read_all_end(file, found, &status));
    SAME(memcmp(values, found, sizeof found), 0);
    destroy(&file);
}

static void nothing_to_move(void) {
    MPI_Status status;
    MPI_Offset bytes = -1;
    MPI_File file = create(MPI_MODE_RDWR);
    DO(MPI_File_write(file, NULL, 0, MPI_INT, &status));
    SAME(count_of(&status, MPI_INT), 0);
    DO(MPI_File_write_all(file, "abc", rank == 0 ? 3 : 0, MPI_CHAR, &status));
    SAME(count_of(&status, MPI_CHAR), rank == 0 ? 3 : 0);
    DO(MPI_File_write_at_all(file, 1000000, NULL, 0, MPI_CHAR, &status));
    DO(MPI_File_write_ordered(file, NULL, 0, MPI_CHAR, &status));
    sync_all(file);
    DO(MPI_File_get_size(file, &bytes));
    SAME(bytes, 3);
    destroy(&file);
}

static void sequential(void) {
    int value = rank + 1, found = 0, sum = 0;
    MPI_File file = create(MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
    DO(MPI_File_write_shared(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    CLASS(MPI_File_write_at(file, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
    CLASS(MPI_File_seek(file, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
    DO(MPI_File_close(&file));
    DO(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file));
    DO(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    DO(MPI_File_read_ordered(file, &found, 1, MPI_INT, MPI_STATUS_IGNORE));
    MPI_Allreduce(&found, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    SAME(sum, size * (size + 1) / 2);
    destroy(&file);
}

static void external32(void) {
    unsigned char bytes[4] = {0};
    int value = 0x01020304 + rank, back = 0;
    MPI_Aint extent = -1;
    MPI_File file = create(MPI_MODE_RDWR);
    DO(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
    DO(MPI_File_get_type_extent(file, MPI_LONG, &extent));
    SAME(extent, 4);
    DO(MPI_File_get_type_extent(file, MPI_LONG_LONG, &extent));
    SAME(extent, 8);
    DO(MPI_File_write_at_all(file, rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    DO(MPI_File_read_at(file, rank, &back, 1, MPI_INT, MPI_STATUS_IGNORE));
    SAME(back, value);
    DO(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    DO(MPI_File_read_at(file, 4 * rank, bytes, 4, MPI_BYTE, MPI_STATUS_IGNORE));
    SAME(bytes[0], 1);
    SAME(bytes[3], 4 + rank);
    destroy(&file);
}

/// A header by one process, then variables in several blocks of the file at once, as PnetCDF writes them.
static void variables_behind_a_header(void) {
    const int lengths[2] = {8, 16};
    const MPI_Aint places[2] = {128 + 8 * rank, 128 + 8 * size + 16 * rank};
    char header[128], found[24], data[24];
    MPI_Datatype blocks;
    MPI_File file = create(MPI_MODE_RDWR);
    memset(header, 'h', sizeof header);
    memset(data, 'a' + rank % 26, sizeof data);
    if (rank == 0) DO(MPI_File_write_at(file, 0, header, sizeof header, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Type_create_hindexed(2, lengths, places, MPI_BYTE, &blocks);
    MPI_Type_commit(&blocks);
    DO(MPI_File_set_view(file, 0, MPI_BYTE, blocks, "native", MPI_INFO_NULL));
    MPI_Type_free(&blocks);
    DO(MPI_File_write_all(file, data, 24, MPI_BYTE, MPI_STATUS_IGNORE));
    DO(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    sync_all(file);
    const int other = size - 1 - rank;
    DO(MPI_File_read_at(file, 128 + 8 * other, found, 8, MPI_BYTE, MPI_STATUS_IGNORE));
    DO(MPI_File_read_at(file, 128 + 8 * size + 16 * other, found + 8, 16, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int i = 0; i < 24; ++i) SAME(found[i], 'a' + other % 26);
    DO(MPI_File_read_at_all(file, 0, header, 128, MPI_BYTE, MPI_STATUS_IGNORE));
    SAME(header[127], 'h');
    destroy(&file);
}

/// A selection of memory and one of the file as one element each, with a view for each transfer, as HDF5 does.
static void selections(void) {
    double cells[6][6], back[6][6];
    MPI_Datatype memory, filetype;
    MPI_Status status;
    MPI_File file = create(MPI_MODE_RDWR);
    for (int i = 0; i < 36; ++i) cells[i / 6][i % 6] = rank * 100 + i;
    memset(back, 0, sizeof back);
    MPI_Type_vector(3, 2, 12, MPI_DOUBLE, &memory);
    MPI_Type_create_hvector(3, 2, 16 * size, MPI_DOUBLE, &filetype);
    MPI_Type_commit(&memory);
    MPI_Type_commit(&filetype);
    DO(MPI_File_set_view(file, 2048 + 16 * rank, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    DO(MPI_File_write_at_all(file, 0, cells, 1, memory, &status));
    SAME(count_of(&status, MPI_BYTE), 48);
    DO(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    DO(MPI_File_set_view(file, 2048 + 16 * rank, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    DO(MPI_File_read_at_all(file, 0, back, 1, memory, &status));
    SAME(back[4][1] == cells[4][1] && back[2][0] == cells[2][0] && back[1][0] == 0, 1);
    DO(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    DO(MPI_File_set_size(file, 2048));
    DO(MPI_File_set_atomicity(file, 1));
    DO(MPI_File_write_at(file, 8 * rank, cells, 1, MPI_DOUBLE, &status));
    DO(MPI_File_set_atomicity(file, 0));
    destroy(&file);
    MPI_Type_free(&memory);
    MPI_Type_free(&filetype);
}

/// Etypes of several bytes: offsets and positions count them.
static void etypes(void) {
    double values[4] = {1, 2, 3, 4}, found = 0;
    MPI_Offset at = -1;
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
    MPI_Type_commit(&pair);
    MPI_File file = create(MPI_MODE_RDWR);
    DO(MPI_File_set_view(file, 64 * rank, pair, pair, "native", MPI_INFO_NULL));
    DO(MPI_File_write(file, values, 2, pair, MPI_STATUS_IGNORE));
    DO(MPI_File_get_position(file, &at));
    SAME(at, 2);
    DO(MPI_File_seek(file, -1, MPI_SEEK_CUR));
    DO(MPI_File_write(file, values, 2, MPI_DOUBLE, MPI_STATUS_IGNORE));
    DO(MPI_File_get_position(file, &at));
    SAME(at, 2);
    DO(MPI_File_set_view(file, 64 * rank, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL));
    DO(MPI_File_read_at(file, 3, &found, 1, MPI_DOUBLE, MPI_STATUS_IGNORE));
    SAME(found, 2);
    destroy(&file);
    MPI_Type_free(&pair);
}

static void deleted_on_close(void) {
    MPI_File file = create(MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    DO(MPI_File_write_at(file, rank, "x", 1, MPI_CHAR, MPI_STATUS_IGNORE));
    DO(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) SAME(access(name, F_OK), -1);
}

static void bottom_of_memory(void) {
    int values[3] = {rank, rank + 1, rank + 2}, found[3] = {0};
    const int lengths[2] = {2, 1};
    MPI_Aint places[2];
    MPI_Datatype type;
    MPI_Get_address(&values[1], &places[0]);
    MPI_Get_address(&values[0], &places[1]);
    MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_File file = create(MPI_MODE_RDWR);
    DO(MPI_File_write_at_all(file, 12 * rank, MPI_BOTTOM, 1, type, MPI_STATUS_IGNORE));
    DO(MPI_File_read_at(file, 12 * rank, found, 3, MPI_INT, MPI_STATUS_IGNORE));
    SAME(found[0], rank + 1);
    SAME(found[2], rank);
    destroy(&file);
    MPI_Type_free(&type);
}

int main(int argc, char** argv) {
#define ROW(function) \
    { #function, function }
    static const struct {
        const char* name;
        void (*run)(void);
    } kIdioms[] = {ROW(subarray_checkpoint), ROW(block_cyclic_darray),
                   ROW(shared_pointer),      ROW(byte_offsets),
                   ROW(ordered_log),         ROW(append_mode),
                   ROW(end_of_file),         ROW(views_back),
                   ROW(access_modes),        ROW(wrong_arguments),
                   ROW(error_handlers),      ROW(prefixes_and_hints),
                   ROW(groups_and_handles),  ROW(sizes),
                   ROW(many_at_once),        ROW(split_collective),
                   ROW(nothing_to_move),     ROW(sequential),
                   ROW(external32),          ROW(variables_behind_a_header),
                   ROW(selections),          ROW(etypes),
                   ROW(deleted_on_close),    ROW(bottom_of_memory)};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int found = 0;
    for (size_t i = 0; i < sizeof kIdioms / sizeof kIdioms[0]; ++i) {
        int wanted = argc == 1;
        for (int j = 1; j < argc; ++j) wanted = wanted || strcmp(argv[j], kIdioms[i].name) == 0;
        if (!wanted) continue;
        ++found;
        idiom = kIdioms[i].name;
        kIdioms[i].run();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return differences > 0 || found == 0;
}
