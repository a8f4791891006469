// Tests user-defined operations that are associative but not commutative (2x2 matrices and affine maps modulo a prime), also with derived
// types: every reduction must combine in rank order.
#include <algorithm>
#include <vector>

#include "check.h"

namespace {

constexpr uint64_t kPrime = 1000003;

struct Matrix {
    uint64_t a, b, c, d;
    bool operator==(const Matrix&) const = default;
};

Matrix multiply(const Matrix& x, const Matrix& y) {
    return {(x.a * y.a + x.b * y.c) % kPrime, (x.a * y.b + x.b * y.d) % kPrime, (x.c * y.a + x.d * y.c) % kPrime,
            (x.c * y.b + x.d * y.d) % kPrime};
}

MPI_Datatype matrix_type;
int op_calls;

void multiply_op(void* in, void* inout, int* length, MPI_Datatype* type) {
    CHECK(*type == matrix_type, "the operation got another datatype");
    op_calls++;
    auto* x = (Matrix*)in;
    auto* y = (Matrix*)inout;
    for (int i = 0; i < *length; i++) y[i] = multiply(x[i], y[i]);
}

// A commutative operation: adds every second element of a vector type.
void strided_sum(void* in, void* inout, int* length, MPI_Datatype*) {
    auto* x = (int*)in;
    auto* y = (int*)inout;
    for (int i = 0; i < *length; i++)
        for (int k = 0; k < 3; k++) y[i * 6 + 2 * k] += x[i * 6 + 2 * k];
}

int rank, size;

Matrix element(int r, int i) {
    uint64_t s = test_seed + r * 1009 + i * 17;
    return {next_random(&s) % kPrime, next_random(&s) % kPrime, next_random(&s) % kPrime, next_random(&s) % kPrime};
}

void check(const char* name, const std::vector<Matrix>& got, int first, int last, int count, int offset = 0) {
    for (int i = 0; i < count; i++) {
        Matrix wanted = element(first, offset + i);
        for (int r = first + 1; r <= last; r++) wanted = multiply(wanted, element(r, offset + i));
        CHECK(got[i] == wanted, "%s of %d: element %d differs", name, count, i);
    }
}

void all_reductions(MPI_Op op, int count) {
    std::vector<Matrix> mine(count * (size_t)size), got(count * (size_t)size);
    for (size_t i = 0; i < mine.size(); i++) mine[i] = element(rank, (int)i);
    MPI_Request request;
    for (int root : {0, size / 2, size - 1}) {
        OK(MPI_Reduce(mine.data(), got.data(), count, matrix_type, op, root, MPI_COMM_WORLD));
        if (rank == root) check("Reduce", got, 0, size - 1, count);
        got = mine;
        OK(MPI_Ireduce(rank == root ? MPI_IN_PLACE : (void*)mine.data(), got.data(), count, matrix_type, op, root,
                       MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        if (rank == root) check("Ireduce in place", got, 0, size - 1, count);
    }
    OK(MPI_Allreduce(mine.data(), got.data(), count, matrix_type, op, MPI_COMM_WORLD));
    check("Allreduce", got, 0, size - 1, count);
    got = mine;
    OK(MPI_Allreduce(MPI_IN_PLACE, got.data(), count, matrix_type, op, MPI_COMM_WORLD));
    check("Allreduce in place", got, 0, size - 1, count);
    OK(MPI_Scan(mine.data(), got.data(), count, matrix_type, op, MPI_COMM_WORLD));
    check("Scan", got, 0, rank, count);
    got = mine;
    OK(MPI_Iscan(MPI_IN_PLACE, got.data(), count, matrix_type, op, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    check("Iscan in place", got, 0, rank, count);
    OK(MPI_Exscan(mine.data(), got.data(), count, matrix_type, op, MPI_COMM_WORLD));
    if (rank > 0) check("Exscan", got, 0, rank - 1, count);
    OK(MPI_Reduce_scatter_block(mine.data(), got.data(), count, matrix_type, op, MPI_COMM_WORLD));
    check("Reduce_scatter_block", got, 0, size - 1, count, rank * count);
    std::vector<int> counts(size);
    int offset = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = (r * 7 + 3) % (count + 1);
        if (r < rank) offset += counts[r];
    }
    OK(MPI_Reduce_scatter(mine.data(), got.data(), counts.data(), matrix_type, op, MPI_COMM_WORLD));
    check("Reduce_scatter", got, 0, size - 1, counts[rank], offset);
}

void strided() {
    MPI_Datatype vector, type;
    MPI_Op op;
    OK(MPI_Type_vector(3, 1, 2, MPI_INT, &vector));
    OK(MPI_Type_create_resized(vector, 0, 6 * sizeof(int), &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(strided_sum, 1, &op));
    for (int count : {1, 50, 3000}) {
        std::vector<int> mine(6 * count), got(6 * count, -1);
        for (int i = 0; i < 6 * count; i++) mine[i] = rank + i;
        OK(MPI_Allreduce(mine.data(), got.data(), count, type, op, MPI_COMM_WORLD));
        for (int i = 0; i < 6 * count; i++) EXPECT_INT(got[i], i % 2 ? -1 : size * (size - 1) / 2 + size * i);
    }
    OK(MPI_Op_free(&op));
    CHECK(op == MPI_OP_NULL);
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&vector));
}

}  // namespace

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    start_seed(99);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    MPI_Op op;
    int commutes;
    OK(MPI_Type_contiguous(4, MPI_UINT64_T, &matrix_type));
    OK(MPI_Type_commit(&matrix_type));
    OK(MPI_Op_create(multiply_op, 0, &op));
    OK(MPI_Op_commutative(op, &commutes));
    EXPECT_INT(commutes, 0);
    OK(MPI_Op_commutative(MPI_SUM, &commutes));
    EXPECT_INT(commutes, 1);
    for (int count : {1, 2, 33, 700, 5000}) all_reductions(op, count > 700 && size > 4 ? 1500 : count);
    if (size > 1) CHECK(op_calls > 0);

    std::vector<Matrix> x{element(1, 1)}, y{element(2, 1)}, z = y;
    OK(MPI_Reduce_local(x.data(), z.data(), 1, matrix_type, op));
    CHECK(z[0] == multiply(x[0], y[0]), "Reduce_local: in × inout");
    OK(MPI_Op_free(&op));
    strided();
    OK(MPI_Type_free(&matrix_type));
    OK(MPI_Finalize());
    return 0;
}
