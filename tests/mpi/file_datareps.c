// Data representations: external32, and one of the program whose numbers have their own size in the file.
#include "files.h"

static int rank, size;

static void external32(void) {
    MPI_File file = new_file(MPI_MODE_RDWR, MPI_INFO_NULL);
    MPI_Status status;
    MPI_Aint extent = -1;
    MPI_Offset at = -1;
    unsigned char bytes[16];
    const int numbers[2] = {0x01020304, 0x05060708 + rank};
    int back[3];
    OK(MPI_File_set_view(file, rank * 8, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
    OK(MPI_File_write(file, numbers, 2, MPI_INT, &status));
    expect_count(&status, MPI_INT, 2);
    OK(MPI_File_get_position(file, &at));
    EXPECT_INT(at, 2);
    OK(MPI_File_read_at(file, 0, back, 2, MPI_INT, &status));
    EXPECT_INT(back[0], numbers[0]);
    EXPECT_INT(back[1], numbers[1]);
    settle(file);
    OK(MPI_File_read_at(file, 2 * (size - rank) - 1, back, 3, MPI_INT, &status));
    expect_count(&status, MPI_INT, 1);
    EXPECT_INT(back[0], 0x05060708 + size - 1);
    OK(MPI_File_get_type_extent(file, MPI_LONG, &extent));
    EXPECT_INT(extent, 4);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_get_type_extent(file, MPI_LONG, &extent));
    EXPECT_INT(extent, sizeof(long));
    OK(MPI_File_read_at_all(file, rank * 8, bytes, 8, MPI_BYTE, &status));
    for (int i = 0; i < 7; i++) EXPECT_INT(bytes[i], i + 1);
    EXPECT_INT(bytes[7], 8 + rank);
    // A filetype of longs, which have 4 bytes in the file: every size-th long.
    MPI_Datatype filetype;
    long out[3] = {rank, -rank - 100, 300 + rank}, in[3];
    OK(MPI_Type_vector(3, 1, size, MPI_LONG, &filetype));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_File_set_view(file, rank * 4, MPI_LONG, filetype, "external32", MPI_INFO_NULL));
    OK(MPI_File_write_all(file, out, 3, MPI_LONG, &status));
    expect_count(&status, MPI_LONG, 3);
    OK(MPI_File_get_byte_offset(file, 2, &at));
    EXPECT_INT(at, rank * 4 + 2 * size * 4);
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_all(file, in, 3, MPI_LONG, &status));
    for (int i = 0; i < 3; i++) EXPECT_INT(in[i], out[i]);
    MPI_Datatype etype, type;
    char name[MPI_MAX_DATAREP_STRING];
    OK(MPI_File_get_view(file, &at, &etype, &type, name));
    CHECK(strcmp(name, "external32") == 0 && etype == MPI_LONG, "the view is %s", name);
    MPI_Aint lb;
    OK(MPI_Type_get_extent(type, &lb, &extent));
    EXPECT_INT(extent, (2 * size + 1) * (int)sizeof(long));
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&filetype));
    OK(MPI_File_close(&file));
}

// The program's representation "digits": an int is a text of 10 characters.
enum { kDigits = 10 };
static int calls;

static int extent_in_file(MPI_Datatype datatype, MPI_Aint* extent, void* extra_state) {
    (void)datatype;
    CHECK(extra_state == &calls, "the extra state");
    *extent = kDigits;
    return MPI_SUCCESS;
}

static int write_digits(void* userbuf, MPI_Datatype datatype, int count, void* filebuf, MPI_Offset position, void* extra_state) {
    (void)datatype;
    ++*(int*)extra_state;
    for (int i = 0; i < count; i++) {
        char text[kDigits + 1];
        snprintf(text, sizeof text, "%10d", ((const int*)userbuf)[position + i]);
        memcpy((char*)filebuf + i * kDigits, text, kDigits);
    }
    return MPI_SUCCESS;
}

static int read_digits(void* userbuf, MPI_Datatype datatype, int count, void* filebuf, MPI_Offset position, void* extra_state) {
    (void)datatype;
    ++*(int*)extra_state;
    for (int i = 0; i < count; i++) {
        char text[kDigits + 1] = "";
        memcpy(text, (const char*)filebuf + i * kDigits, kDigits);
        ((int*)userbuf)[position + i] = atoi(text);
    }
    return MPI_SUCCESS;
}

static int read_fails(void* userbuf, MPI_Datatype datatype, int count, void* filebuf, MPI_Offset position, void* extra_state) {
    (void)userbuf, (void)datatype, (void)count, (void)filebuf, (void)position, (void)extra_state;
    return MPI_ERR_CONVERSION;
}

#if MPI_AT_LEAST(4, 0)
static int read_many(void* userbuf, MPI_Datatype datatype, MPI_Count count, void* filebuf, MPI_Offset position, void* extra_state) {
    return read_digits(userbuf, datatype, (int)count, filebuf, position, extra_state);
}
static int write_many(void* userbuf, MPI_Datatype datatype, MPI_Count count, void* filebuf, MPI_Offset position, void* extra_state) {
    return write_digits(userbuf, datatype, (int)count, filebuf, position, extra_state);
}
/// The large-count form, and a number that one process writes for itself.
static void large_representation(void) {
    int number = 4711 + rank, back = 0;
    MPI_Status status;
    OK(MPI_Register_datarep_c("many digits", read_many, write_many, extent_in_file, &calls));
    MPI_File file = new_file(MPI_MODE_RDWR, MPI_INFO_NULL);
    OK(MPI_File_set_view(file, rank * kDigits, MPI_INT, MPI_INT, "many digits", MPI_INFO_NULL));
    OK(MPI_File_write_c(file, &number, 1, MPI_INT, &status));
    OK(MPI_File_read_at_all_c(file, 0, &back, 1, MPI_INT, &status));
    EXPECT_INT(back, number);
    OK(MPI_File_close(&file));
}
#endif

static void own_representation(void) {
    MPI_File file;
    MPI_Status status;
    MPI_Aint extent = -1;
    const int out[3] = {rank, -5, 1234567};
    int in[4] = {0, 0, 0, 77};
    char text[kDigits + 1] = "";
    OK(MPI_Register_datarep("digits", read_digits, write_digits, extent_in_file, &calls));
    OK(MPI_Register_datarep("broken", read_fails, MPI_CONVERSION_FN_NULL, extent_in_file, &calls));
    EXPECT_ERROR(MPI_Register_datarep("digits", read_digits, write_digits, extent_in_file, &calls), MPI_ERR_DUP_DATAREP);
    EXPECT_ERROR(MPI_Register_datarep("native", read_digits, write_digits, extent_in_file, &calls), MPI_ERR_DUP_DATAREP);
    EXPECT_ERROR(MPI_Register_datarep("nothing", read_digits, write_digits, NULL, &calls), MPI_ERR_ARG);
    file = new_file(MPI_MODE_RDWR, MPI_INFO_NULL);
    OK(MPI_File_set_view(file, rank * 3 * kDigits, MPI_INT, MPI_INT, "digits", MPI_INFO_NULL));
    OK(MPI_File_get_type_extent(file, MPI_INT, &extent));
    EXPECT_INT(extent, kDigits);
    OK(MPI_File_write_at_all(file, 0, out, 3, MPI_INT, &status));
    expect_count(&status, MPI_INT, 3);
    CHECK(calls > 0, "no call of the conversion function");
    settle(file);
    MPI_Request request;
    OK(MPI_File_iread_at(file, 3 * (size - rank) - 2, in, 4, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    expect_count(&status, MPI_INT, 2);
    EXPECT_INT(in[0], -5);
    EXPECT_INT(in[1], 1234567);
    EXPECT_INT(in[3], 77);
    OK(MPI_File_set_view(file, 0, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, rank * 3 * kDigits + 2 * kDigits, text, kDigits, MPI_CHAR, &status));
    CHECK(strcmp(text, "   1234567") == 0, "the text is \"%s\"", text);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "broken", MPI_INFO_NULL));
    EXPECT_ERROR(MPI_File_read_at(file, 0, in, 1, MPI_INT, &status), MPI_ERR_CONVERSION);
    // Without a conversion function, an int of 4 bytes has no place in the file's 10 bytes.
    EXPECT_ERROR(MPI_File_write_at(file, 0, in, 1, MPI_INT, &status), MPI_ERR_CONVERSION);
    OK(MPI_File_close(&file));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    external32();
    own_representation();
#if MPI_AT_LEAST(4, 0)
    large_representation();
#endif
    OK(MPI_Finalize());
    return 0;
}
