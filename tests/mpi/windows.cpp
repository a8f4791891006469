// Tests windows of all kinds against a model of one process's memory: puts, gets and updates under fences, locks and posts, with types of
// all kinds on both sides. Also tests errors.
#include <algorithm>
#include <complex>
#include <numeric>
#include <vector>

#include "check.h"

namespace {

int rank, size;

struct Made {
    MPI_Win win;
    char* memory;
    std::vector<char> own;
};

/// Creates a zeroed window of `bytes` per rank by MPI_Win_allocate or MPI_Win_create.
void make(Made& made, MPI_Aint bytes, int unit, bool allocate) {
    if (allocate) {
        OK(MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &made.memory, &made.win));
        memset(made.memory, 0, static_cast<size_t>(bytes));
    } else {
        made.own.assign(static_cast<size_t>(bytes), 0);
        made.memory = made.own.data();
        OK(MPI_Win_create(made.memory, bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &made.win));
    }
    OK(MPI_Win_set_errhandler(made.win, MPI_ERRORS_RETURN));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

void fences(bool allocate) {
    constexpr int kMost = 300000;
    Made made;
    make(made, kMost * static_cast<MPI_Aint>(size), 1, allocate);
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    OK(MPI_Win_fence(0, made.win));
    for (const int bytes : {0, 1, 7, 64, 1000, 5000, 20000, kMost}) {
        std::vector<char> data(static_cast<size_t>(bytes)), back(static_cast<size_t>(bytes));
        fill_bytes(data.data(), data.size(), static_cast<uint64_t>(rank + bytes));
        OK(MPI_Put(data.data(), bytes, MPI_CHAR, next, MPI_Aint{rank} * kMost, bytes, MPI_CHAR, made.win));
        OK(MPI_Win_fence(0, made.win));
        EXPECT_INT(first_wrong_byte(made.memory + MPI_Aint{before} * kMost, data.size(), static_cast<uint64_t>(before + bytes)),
                   -1);
        OK(MPI_Get(back.data(), bytes, MPI_CHAR, next, MPI_Aint{rank} * kMost, bytes, MPI_CHAR, made.win));
        OK(MPI_Win_fence(0, made.win));
        CHECK(back == data, "%d bytes were not returned unchanged", bytes);
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, made.win));
    OK(MPI_Win_free(&made.win));
    CHECK(made.win == MPI_WIN_NULL, "the handle is not null");
}

/// All ranks add to rank 0's numbers of many types at the same time.
template <class Number>
void add_all(MPI_Datatype type, Number each, bool allocate) {
    constexpr int kNumbers = 700, kTimes = 5;
    Made made;
    make(made, kNumbers * sizeof(Number), sizeof(Number), allocate);
    std::vector<Number> ones(kNumbers, each);
    OK(MPI_Win_lock_all(0, made.win));
    for (int i = 0; i < kTimes; ++i) OK(MPI_Accumulate(ones.data(), kNumbers, type, 0, 0, kNumbers, type, MPI_SUM, made.win));
    Number old{};
    OK(MPI_Fetch_and_op(&each, &old, type, 0, 3, MPI_SUM, made.win));
    OK(MPI_Win_flush(0, made.win));
    OK(MPI_Win_unlock_all(made.win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, made.win));
        const auto* numbers = reinterpret_cast<Number*>(made.memory);
        for (int i = 0; i < kNumbers; ++i) {
            Number wanted{};
            for (int n = 0; n < size * (kTimes + (i == 3)); ++n) wanted += each;
            CHECK(numbers[i] == wanted, "number %d of %d bytes", i, static_cast<int>(sizeof(Number)));
        }
        OK(MPI_Win_unlock(0, made.win));
    }
    OK(MPI_Win_free(&made.win));
}

/// Types with gaps on both sides: every second int of the origin goes to every third int of the target.
void derived(bool allocate) {
    constexpr int kInts = 2000;
    Made made;
    make(made, 3 * kInts * static_cast<MPI_Aint>(sizeof(int)), sizeof(int), allocate);
    MPI_Datatype second, third;
    OK(MPI_Type_vector(kInts, 1, 2, MPI_INT, &second));
    OK(MPI_Type_vector(kInts, 1, 3, MPI_INT, &third));
    OK(MPI_Type_commit(&second));
    OK(MPI_Type_commit(&third));
    std::vector<int> data(2 * kInts);
    std::iota(data.begin(), data.end(), 10000 * rank);
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, made.win));
    OK(MPI_Put(data.data(), 1, second, next, 0, 1, third, made.win));
    OK(MPI_Win_fence(0, made.win));
    OK(MPI_Accumulate(data.data(), 1, second, next, 1, 1, third, MPI_REPLACE, made.win));
    OK(MPI_Accumulate(data.data(), 1, second, next, 1, 1, third, MPI_SUM, made.win));
    OK(MPI_Win_fence(0, made.win));
    const int* ints = reinterpret_cast<int*>(made.memory);
    for (int i = 0; i < kInts; ++i) {
        EXPECT_INT(ints[3 * i], 10000 * before + 2 * i);
        EXPECT_INT(ints[3 * i + 1], 2 * (10000 * before + 2 * i));
        EXPECT_INT(ints[3 * i + 2], 0);
    }
    std::vector<int> back(2 * kInts, -1);
    OK(MPI_Get_accumulate(nullptr, 0, MPI_INT, back.data(), 1, second, next, 0, 1, third, MPI_NO_OP, made.win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, made.win));
    for (int i = 0; i < kInts; ++i) {
        EXPECT_INT(back[static_cast<size_t>(2 * i)], data[static_cast<size_t>(2 * i)]);
        EXPECT_INT(back[static_cast<size_t>(2 * i + 1)], -1);
    }
    OK(MPI_Type_free(&second));
    OK(MPI_Type_free(&third));
    OK(MPI_Win_free(&made.win));
}

/// Accumulates in memory with gaps between values: pair types such as MPI_SHORT_INT have gaps.
void pairs(bool allocate) {
    struct ShortInt {
        short value;
        int index;
    };
    constexpr int kPairs = 50;
    Made made;
    make(made, kPairs * static_cast<MPI_Aint>(sizeof(ShortInt)), sizeof(ShortInt), allocate);
    std::vector<ShortInt> mine(kPairs);
    for (int i = 0; i < kPairs; ++i) mine[static_cast<size_t>(i)] = {static_cast<short>(1 + (rank * 7 + i) % (size + 3)), rank};
    OK(MPI_Win_fence(0, made.win));
    OK(MPI_Accumulate(mine.data(), kPairs, MPI_SHORT_INT, 0, 0, kPairs, MPI_SHORT_INT, MPI_MAXLOC, made.win));
    OK(MPI_Win_fence(0, made.win));
    for (int i = 0; rank == 0 && i < kPairs; ++i) {
        ShortInt best{0, 0};
        for (int r = 0; r < size; ++r) {
            const auto value = static_cast<short>(1 + (r * 7 + i) % (size + 3));
            if (value > best.value) best = {value, r};
        }
        const ShortInt& is = reinterpret_cast<ShortInt*>(made.memory)[i];
        EXPECT_INT(is.value, best.value);
        EXPECT_INT(is.index, best.index);
    }
    OK(MPI_Win_free(&made.win));
}

/// Increments a counter by a separate get and put under an exclusive lock: no increment may be lost.
void exclusive(bool allocate) {
    constexpr int kTimes = 50;
    Made made;
    make(made, 2 * sizeof(long), sizeof(long), allocate);
    for (int i = 0; i < kTimes; ++i) {
        const int target = i % size;
        long value = 0;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, made.win));
        OK(MPI_Get(&value, 1, MPI_LONG, target, 1, 1, MPI_LONG, made.win));
        OK(MPI_Win_flush(target, made.win));
        ++value;
        OK(MPI_Put(&value, 1, MPI_LONG, target, 1, 1, MPI_LONG, made.win));
        OK(MPI_Win_unlock(target, made.win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, made.win));
    int turns = 0;
    for (int i = 0; i < kTimes; ++i) turns += i % size == rank;
    EXPECT_INT(reinterpret_cast<long*>(made.memory)[1], turns * size);
    OK(MPI_Win_unlock(rank, made.win));
    OK(MPI_Win_free(&made.win));
}

/// Ranks take numbers from one counter by compare-and-swap: each number is taken once.
void compare_and_swap(bool allocate) {
    constexpr int kNumbers = 60;
    Made made;
    make(made, sizeof(int), sizeof(int), allocate);
    std::vector<int> taken(kNumbers, 0), all(kNumbers, 0);
    OK(MPI_Win_lock_all(0, made.win));
    for (int seen = 0; seen < kNumbers;) {
        const int wanted = seen + 1;
        int old = -1;
        OK(MPI_Compare_and_swap(&wanted, &seen, &old, MPI_INT, 0, 0, made.win));
        OK(MPI_Win_flush(0, made.win));
        if (old == seen) ++taken[static_cast<size_t>(seen)];
        seen = old == seen ? wanted : old;
    }
    OK(MPI_Win_unlock_all(made.win));
    OK(MPI_Allreduce(taken.data(), all.data(), kNumbers, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (const int times : all) EXPECT_INT(times, 1);
    OK(MPI_Win_free(&made.win));
}

/// Each rank posts to the rank before it and starts an epoch with the next one.
void posts(bool allocate) {
    Made made;
    make(made, sizeof(int) * 3, sizeof(int), allocate);
    MPI_Group all, from, to;
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    OK(MPI_Win_get_group(made.win, &all));
    OK(MPI_Group_incl(all, 1, &next, &to));
    OK(MPI_Group_incl(all, 1, &before, &from));
    for (int round = 1; round <= 20; ++round) {
        const int value = 100 * rank + round;
        OK(MPI_Win_post(from, 0, made.win));
        OK(MPI_Win_start(to, 0, made.win));
        OK(MPI_Put(&value, 1, MPI_INT, next, 1, 1, MPI_INT, made.win));
        OK(MPI_Win_complete(made.win));
        int flag = 0;
        while (round % 2 && !flag) OK(MPI_Win_test(made.win, &flag));
        if (!flag) OK(MPI_Win_wait(made.win));
        EXPECT_INT(reinterpret_cast<int*>(made.memory)[1], 100 * before + round);
    }
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&from));
    OK(MPI_Group_free(&to));
    OK(MPI_Win_free(&made.win));
}

void requests(bool allocate) {
    Made made;
    make(made, 1000 * static_cast<MPI_Aint>(sizeof(int)), sizeof(int), allocate);
    std::vector<int> data(1000 / static_cast<size_t>(size), rank + 1), back(data.size());
    const int count = static_cast<int>(data.size()), at = rank * count, last = size - 1;
    OK(MPI_Win_lock_all(0, made.win));
    MPI_Request request[2];
    OK(MPI_Rput(data.data(), count, MPI_INT, last, at, count, MPI_INT, made.win, &request[0]));
    OK(MPI_Wait(&request[0], MPI_STATUS_IGNORE));
    OK(MPI_Win_flush(last, made.win));
    OK(MPI_Raccumulate(data.data(), count, MPI_INT, last, at, count, MPI_INT, MPI_SUM, made.win, &request[0]));
    OK(MPI_Rget_accumulate(data.data(), count, MPI_INT, back.data(), count, MPI_INT, last, at, count, MPI_INT, MPI_SUM,
                           made.win, &request[1]));
    OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
    for (const int value : back) EXPECT_INT(value, 2 * (rank + 1));
    OK(MPI_Rget(back.data(), count, MPI_INT, last, at, count, MPI_INT, made.win, &request[0]));
    OK(MPI_Wait(&request[0], MPI_STATUS_IGNORE));
    for (const int value : back) EXPECT_INT(value, 3 * (rank + 1));
    OK(MPI_Rput(data.data(), count, MPI_INT, MPI_PROC_NULL, 0, count, MPI_INT, made.win, &request[0]));
    OK(MPI_Wait(&request[0], MPI_STATUS_IGNORE));
    OK(MPI_Win_unlock_all(made.win));
    OK(MPI_Win_free(&made.win));
}

void dynamic() {
    MPI_Win win;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    std::vector<int> mine(100, -1);
    OK(MPI_Win_attach(win, mine.data(), 400));
    EXPECT_ERROR(MPI_Win_attach(win, mine.data() + 50, 8), MPI_ERR_RMA_ATTACH);
    MPI_Aint address;
    OK(MPI_Get_address(mine.data(), &address));
    std::vector<MPI_Aint> all(static_cast<size_t>(size));
    OK(MPI_Allgather(&address, 1, MPI_AINT, all.data(), 1, MPI_AINT, MPI_COMM_WORLD));
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&rank, 1, MPI_INT, next, MPI_Aint_add(all[static_cast<size_t>(next)], 40), 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    EXPECT_INT(mine[10], before);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    int error = MPI_Put(&rank, 1, MPI_INT, next, MPI_Aint_add(all[static_cast<size_t>(next)], 400), 1, MPI_INT, win);
    if (error == MPI_SUCCESS)
        error = MPI_Win_unlock(next, win);
    else
        OK(MPI_Win_unlock(next, win));
    EXPECT_ERROR(error, MPI_ERR_RMA_RANGE);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(win, mine.data()));
    EXPECT_ERROR(MPI_Win_detach(win, mine.data()), MPI_ERR_RMA_ATTACH);
    OK(MPI_Win_free(&win));
}

/// A shared window in which only ranks with even numbers have memory, each apart from the others.
void shared_apart() {
    MPI_Comm host;
    MPI_Info info;
    MPI_Win win;
    int *mine, *theirs, unit, rank, size;
    MPI_Aint bytes;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    OK(MPI_Comm_rank(host, &rank));
    OK(MPI_Comm_size(host, &size));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
    OK(MPI_Win_allocate_shared(rank % 2 == 0 ? 64 : 0, sizeof(int), info, host, &mine, &win));
    for (int r = 0; r < size; ++r) {
        OK(MPI_Win_shared_query(win, r, &bytes, &unit, &theirs));
        EXPECT_INT(bytes, r % 2 == 0 ? 64 : 0);
        CHECK((theirs != nullptr) == (r % 2 == 0), "the memory of rank %d is at %p", r, static_cast<void*>(theirs));
    }
    OK(MPI_Win_free(&win));
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_free(&host));
}

/// In a shared window, each rank changes the next rank's memory by direct stores and by RMA calls.
void shared() {
    MPI_Comm host;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    int rank, size;
    OK(MPI_Comm_rank(host, &rank));
    OK(MPI_Comm_size(host, &size));
    MPI_Win win;
    int* mine;
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    OK(MPI_Win_allocate_shared((rank + 1) * static_cast<MPI_Aint>(sizeof(int)), sizeof(int), MPI_INFO_NULL, host, &mine, &win));
    OK(MPI_Win_lock_all(0, win));
    for (int r = 0; r < size; ++r) {
        MPI_Aint bytes;
        int unit, *theirs;
        OK(MPI_Win_shared_query(win, r, &bytes, &unit, &theirs));
        EXPECT_INT(bytes, (r + 1) * static_cast<int>(sizeof(int)));
        EXPECT_INT(unit, sizeof(int));
        CHECK(theirs >= mine || r < rank, "not in a row");
        if (r == next) theirs[r] = 1000 * rank;
    }
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(host));
    OK(MPI_Win_sync(win));
    EXPECT_INT(mine[rank], 1000 * before);
    OK(MPI_Barrier(host));
    const int one = 1;
    for (int r = 0; r < size; ++r) OK(MPI_Accumulate(&one, 1, MPI_INT, r, r, 1, MPI_INT, MPI_SUM, win));
    OK(MPI_Win_flush_all(win));
    OK(MPI_Barrier(host));
    EXPECT_INT(mine[rank], 1000 * before + size);
    int *first, unit;
    MPI_Aint bytes;
    OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &first));
    CHECK(first == mine - rank * (rank + 1) / 2, "MPI_Win_shared_query(MPI_PROC_NULL) did not return rank 0's memory");
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&host));
}

/// A process that computes outside MPI must not delay accesses from its own host.
void without_the_target() {
    MPI_Comm host;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    int rank, size;
    OK(MPI_Comm_rank(host, &rank));
    OK(MPI_Comm_size(host, &size));
    Made made;
    OK(MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, host, &made.memory, &made.win));
    memset(made.memory, 0, 2 * sizeof(int));
    OK(MPI_Barrier(host));
    volatile int* flag = reinterpret_cast<int*>(made.memory);
    int value = 0;
    if (rank == size - 1) {
        // No MPI call until every other rank has accessed this memory.
        while (flag[0] < size - 1) {}
        EXPECT_INT(flag[1], size - 1);
    } else {
        const int one = 1;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, made.win));
        OK(MPI_Get(&value, 1, MPI_INT, size - 1, 1, 1, MPI_INT, made.win));
        OK(MPI_Win_flush(size - 1, made.win));
        ++value;
        OK(MPI_Put(&value, 1, MPI_INT, size - 1, 1, 1, MPI_INT, made.win));
        OK(MPI_Win_flush(size - 1, made.win));
        OK(MPI_Accumulate(&one, 1, MPI_INT, size - 1, 0, 1, MPI_INT, MPI_SUM, made.win));
        OK(MPI_Win_unlock(size - 1, made.win));
    }
    OK(MPI_Win_free(&made.win));
    OK(MPI_Comm_free(&host));
}

void refused(bool allocate) {
    Made made;
    make(made, 64, 4, allocate);
    int value = 1;
    const int next = (rank + 1) % size;
    EXPECT_ERROR(MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, made.win), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_unlock(next, made.win), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_flush(next, made.win), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_complete(made.win), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_wait(made.win), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_lock(77, next, 0, made.win), MPI_ERR_LOCKTYPE);
    EXPECT_ERROR(MPI_Win_lock(MPI_LOCK_SHARED, next, MPI_MODE_NOPUT, made.win), MPI_ERR_ASSERT);
    EXPECT_ERROR(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, made.win), MPI_ERR_RANK);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, made.win));
    EXPECT_ERROR(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, made.win), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Win_fence(0, made.win), MPI_ERR_RMA_SYNC);
    EXPECT_ERROR(MPI_Put(&value, 1, MPI_INT, next, 16, 1, MPI_INT, made.win), MPI_ERR_RMA_RANGE);
    EXPECT_ERROR(MPI_Put(&value, 1, MPI_INT, next, -1, 1, MPI_INT, made.win), MPI_ERR_DISP);
    EXPECT_ERROR(MPI_Accumulate(&value, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_MAXLOC, made.win), MPI_ERR_OP);
    OK(MPI_Accumulate(&value, 0, MPI_BYTE, next, 0, 0, MPI_BYTE, MPI_SUM, made.win));  // without data any operation is valid
    EXPECT_ERROR(MPI_Put(&value, 1, MPI_INT, size, 0, 1, MPI_INT, made.win), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Put(&value, -1, MPI_INT, next, 0, 1, MPI_INT, made.win), MPI_ERR_COUNT);
    OK(MPI_Put(&value, 1, MPI_INT, next, 15, 1, MPI_INT, made.win));
    OK(MPI_Win_unlock(next, made.win));
    EXPECT_ERROR(MPI_Win_attach(made.win, &value, 4), MPI_ERR_RMA_FLAVOR);
    OK(MPI_Win_free(&made.win));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    EXPECT_ERROR(MPI_Win_fence(0, MPI_WIN_NULL), MPI_ERR_WIN);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

}  // namespace

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    for (const bool allocate : {false, true}) {
        fences(allocate);
        add_all<int>(MPI_INT, 3, allocate);
        add_all<double>(MPI_DOUBLE, 0.25, allocate);
        add_all<short>(MPI_SHORT, 1, allocate);
        add_all<long double>(MPI_LONG_DOUBLE, 2, allocate);
        add_all<std::complex<double>>(MPI_C_DOUBLE_COMPLEX, {1, -2}, allocate);
        derived(allocate);
        pairs(allocate);
        exclusive(allocate);
        compare_and_swap(allocate);
        posts(allocate);
        requests(allocate);
        refused(allocate);
    }
    shared();
    shared_apart();
    without_the_target();
    dynamic();
    OK(MPI_Finalize());
    return 0;
}
