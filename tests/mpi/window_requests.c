// Tests accesses of dynamic windows. Errors of their requests go to the window's error handler, adjacent attached blocks are accessed in
// one operation, and updates without elements on one side move nothing, whatever the types. Also runs short updates whose operands the
// program changes too early.
#include "check.h"

enum { kNumbers = 16, kUpdates = 3000 };

static int rank, size, next, called;
static long memory[kNumbers];
static MPI_Win win;
static MPI_Aint there;

static void handler(MPI_Win* which, int* code, ...) {
    CHECK(class_of(*code) == MPI_ERR_RMA_RANGE || *code == MPI_ERR_IN_STATUS, "error class %d", class_of(*code));
    CHECK(*which == win, "the handler got another window");
    called++;
}

static void errors(void) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Errhandler errhandler;
    long value = 1;
    OK(MPI_Win_create_errhandler(handler, &errhandler));
    OK(MPI_Win_set_errhandler(win, errhandler));
    OK(MPI_Errhandler_free(&errhandler));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    // No memory is attached at this displacement. The origin knows this only if it is the target too.
    int code = MPI_Rput(&value, 1, MPI_LONG, next, 4096, 1, MPI_LONG, win, &requests[0]);
    if (next != rank) code = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    EXPECT_INT(class_of(code), MPI_ERR_RMA_RANGE);
    EXPECT_INT(called, 1);
    if (next != rank) {
        OK(MPI_Rget(&value, 1, MPI_LONG, next, 4096, 1, MPI_LONG, win, &requests[0]));
        OK(MPI_Raccumulate(&value, 1, MPI_LONG, next, 4096, 1, MPI_LONG, MPI_SUM, win, &requests[1]));
        EXPECT_INT(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
    }
    OK(MPI_Win_unlock(next, win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_ARE_FATAL));
}

static void side_by_side(void) {
    long numbers[kNumbers];
    for (int i = 0; i < kNumbers; i++) numbers[i] = 100 * rank + i;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(numbers, kNumbers, MPI_LONG, next, there, kNumbers, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < kNumbers; i++) EXPECT_INT(memory[i], 100 * ((rank + size - 1) % size) + i);
    OK(MPI_Win_fence(0, win));
}

static void nothing(void) {
    long number = 5;
    float real = 5;
    OK(MPI_Accumulate(&real, 0, MPI_FLOAT, next, there, 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Accumulate(NULL, 0, MPI_FLOAT, next, there, 0, MPI_LONG, MPI_SUM, win));
    OK(MPI_Get_accumulate(&real, 0, MPI_FLOAT, &number, 0, MPI_LONG, next, there, 0, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    EXPECT_INT(memory[0], 100 * ((rank + size - 1) % size));
    EXPECT_INT(number, 5);
}

static void operands_that_change(void) {
    memory[0] = 0;
    OK(MPI_Win_fence(0, win));
    long sum = 0, operand;
    for (long i = 1; i <= kUpdates; i++) {
        operand = i;
        OK(MPI_Accumulate(&operand, 1, MPI_LONG, next, there, 1, MPI_LONG, MPI_SUM, win));
        sum += i;
        operand = 1 << 30;
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    EXPECT_INT(memory[0], sum);
}

int main(int argc, char** argv) {
    MPI_Aint own;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    next = (rank + 1) % size;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Get_address(memory, &own));
    OK(MPI_Sendrecv(&own, 1, MPI_AINT, (rank + size - 1) % size, 0, &there, 1, MPI_AINT, next, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    OK(MPI_Win_attach(win, memory + kNumbers / 2, sizeof memory / 2));
    OK(MPI_Win_attach(win, memory, sizeof memory / 2));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    errors();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    side_by_side();
    nothing();
    operands_that_change();
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
    return 0;
}
