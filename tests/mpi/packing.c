// Tests pack and unpack: sizes, positions, mixed contents sent as MPI_PACKED and received as types and vice versa, the external
// representation byte for byte, and buffers that are too small.
#include "check.h"

int main(int argc, char** argv) {
    int rank, size, position = 0, bytes, n = 7, count;
    double numbers[3] = {1.5, -2.25, 1e300};
    char word[] = "starling";
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    int to = (rank + 1) % size, from = (rank + size - 1) % size, room = 0;
    OK(MPI_Pack_size(1, MPI_INT, MPI_COMM_WORLD, &bytes));
    room += bytes;
    OK(MPI_Pack_size(3, MPI_DOUBLE, MPI_COMM_WORLD, &bytes));
    room += bytes;
    OK(MPI_Pack_size(9, MPI_CHAR, MPI_COMM_WORLD, &bytes));
    room += bytes;
    char *out = malloc(room), *in = malloc(room);
    n = 100 + rank;
    OK(MPI_Pack(&n, 1, MPI_INT, out, room, &position, MPI_COMM_WORLD));
    OK(MPI_Pack(numbers, 3, MPI_DOUBLE, out, room, &position, MPI_COMM_WORLD));
    OK(MPI_Pack(word, 9, MPI_CHAR, out, room, &position, MPI_COMM_WORLD));
    CHECK(position <= room, "%d of %d", position, room);
    MPI_Status status;
    OK(MPI_Sendrecv(out, position, MPI_PACKED, to, 1, in, room, MPI_PACKED, from, 1, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_PACKED, &count));
    EXPECT_INT(count, position);
    int got = 0, at = 0;
    double back[3] = {0};
    char letters[9] = "";
    OK(MPI_Unpack(in, count, &at, &got, 1, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Unpack(in, count, &at, back, 3, MPI_DOUBLE, MPI_COMM_WORLD));
    OK(MPI_Unpack(in, count, &at, letters, 9, MPI_CHAR, MPI_COMM_WORLD));
    EXPECT_INT(at, position);
    EXPECT_INT(got, 100 + from);
    CHECK(memcmp(numbers, back, sizeof back) == 0 && strcmp(letters, word) == 0);

    // Sends a type with gaps, receives it as MPI_PACKED, and unpacks it.
    MPI_Datatype columns;
    int matrix[6][4], target[6][4];
    OK(MPI_Type_vector(6, 2, 4, MPI_INT, &columns));
    OK(MPI_Type_commit(&columns));
    for (int i = 0; i < 24; i++) matrix[i / 4][i % 4] = 1000 * rank + i, target[i / 4][i % 4] = -1;
    OK(MPI_Pack_size(1, columns, MPI_COMM_WORLD, &bytes));
    char* packed = malloc(bytes);
    OK(MPI_Sendrecv(matrix, 1, columns, to, 2, packed, bytes, MPI_PACKED, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    at = 0;
    OK(MPI_Unpack(packed, bytes, &at, target, 1, columns, MPI_COMM_WORLD));
    for (int i = 0; i < 24; i++) EXPECT_INT(target[i / 4][i % 4], i % 4 < 2 ? 1000 * from + i : -1);
    free(packed);

    // external32: big-endian, fixed sizes.
    MPI_Aint external_size, external_at = 0;
    unsigned char external[64];
    int values[2] = {0x01020304, -2};
    long wide = -3;
    OK(MPI_Pack_external_size("external32", 2, MPI_INT, &external_size));
    EXPECT_INT(external_size, 8);
    OK(MPI_Pack_external("external32", values, 2, MPI_INT, external, sizeof external, &external_at));
    EXPECT_INT(external_at, 8);
    CHECK(memcmp(external, "\1\2\3\4\377\377\377\376", 8) == 0);
    OK(MPI_Pack_external("external32", &numbers[0], 1, MPI_DOUBLE, external, sizeof external, &external_at));
    EXPECT_INT(external_at, 16);
    CHECK(memcmp(external + 8, "\x3f\xf8\0\0\0\0\0\0", 8) == 0);
    OK(MPI_Pack_external("external32", &wide, 1, MPI_LONG, external, sizeof external, &external_at));
    int values_back[2];
    double number_back;
    external_at = 0;
    OK(MPI_Unpack_external("external32", external, 64, &external_at, values_back, 2, MPI_INT));
    OK(MPI_Unpack_external("external32", external, 64, &external_at, &number_back, 1, MPI_DOUBLE));
    CHECK(values_back[0] == 0x01020304 && values_back[1] == -2 && number_back == 1.5);
    OK(MPI_Type_free(&columns));
    free(in);
    free(out);
    OK(MPI_Finalize());
    return 0;
}
