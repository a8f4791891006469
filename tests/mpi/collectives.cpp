// Compares every collective with a plain reference. Counts, types, roots and layouts are random, operations run in place or not, blocking
// or not, on MPI_COMM_WORLD and on communicators with permuted ranks. Every rank computes the reference locally, because the seed
// determines all contributions.
#include <algorithm>
#include <functional>
#include <vector>

#include "blocking_or_not.h"

namespace {

MPI_Comm comm;
int rank, size;

// Returns element i of rank r's contribution to round `key`; small enough that sums are exact in double and int.
int element(uint64_t key, int r, int i) {
    uint64_t state = key * 7919 + (uint64_t)r * 104729 + (uint64_t)i * 31;
    return (int)(next_random(&state) % 1000);
}

std::vector<int> contribution(uint64_t key, int r, int count) {
    std::vector<int> data(count);
    for (int i = 0; i < count; i++) data[i] = element(key, r, i);
    return data;
}

int draw_count(uint64_t* state) {
    switch (random_below(state, 6)) {
        case 0:
            return random_below(state, 3);
        case 1:
            return 1 + random_below(state, 16);
        case 2:
            return 1 + random_below(state, 200);
        case 3:
            return 1 + random_below(state, 3000);
        case 4:
            return 1 + random_below(state, 20000 / size + 1);
        default:
            return 1 + random_below(state, 100000 / size + 1);
    }
}

void compare(const char* name, const int* got, const int* wanted, size_t n, int count, int root) {
    for (size_t i = 0; i < n; i++)
        CHECK(got[i] == wanted[i], "%s%s count %d root %d: element %zu is %d, wanted %d", non_blocking ? "I" : "", name, count,
              root, i, got[i], wanted[i]);
}

constexpr int kFiller = -77;

void bcast(uint64_t key, uint64_t* state) {
    int count = draw_count(state), root = random_below(state, size);
    std::vector<int> wanted = contribution(key, root, count), data(count, kFiller);
    if (rank == root) data = wanted;
    call([&] { return MPI_Bcast(data.data(), count, MPI_INT, root, comm); },
         [&](MPI_Request* r) { return MPI_Ibcast(data.data(), count, MPI_INT, root, comm, r); });
    compare("Bcast", data.data(), wanted.data(), count, count, root);
}

struct Blocks {  // counts, and displacements with gaps in random order, for a v-variant (MPI_Gatherv ...)
    std::vector<int> counts, displacements;
    int total = 0;
    Blocks(uint64_t* state, int n, int most) : counts(n), displacements(n) {
        std::vector<int> order(n);
        for (int i = 0; i < n; i++) order[i] = i;
        for (int i = n - 1; i > 0; i--) std::swap(order[i], order[random_below(state, i + 1)]);
        for (int i : order) {
            counts[i] = random_below(state, most + 1);
            displacements[i] = total;
            total += counts[i] + random_below(state, 3);
        }
    }
};

void gather(uint64_t key, uint64_t* state, bool all, bool vector) {
    int count = draw_count(state), root = random_below(state, size);
    bool in_place = random_below(state, 2);
    Blocks blocks(state, size, count);
    std::vector<int>&counts = blocks.counts, &where = blocks.displacements;
    if (!vector)
        for (int i = 0; i < size; i++) counts[i] = count, where[i] = i * count, blocks.total = size * count;
    std::vector<int> wanted(blocks.total, kFiller), got(blocks.total, kFiller);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++) wanted[where[r] + i] = element(key, r, i);
    std::vector<int> mine = contribution(key, rank, counts[rank]);
    bool receives = all || rank == root, place = in_place && receives;
    if (place) std::copy(mine.begin(), mine.end(), got.begin() + where[rank]);
    const void* send = place ? MPI_IN_PLACE : mine.data();
    int n = place ? 0 : counts[rank];
    MPI_Datatype type = place ? MPI_DATATYPE_NULL : MPI_INT;
    void* receive = receives ? got.data() : nullptr;
    if (all && vector)
        call([&] { return MPI_Allgatherv(send, n, type, receive, counts.data(), where.data(), MPI_INT, comm); },
             [&](MPI_Request* r) {
                 return MPI_Iallgatherv(send, n, type, receive, counts.data(), where.data(), MPI_INT, comm, r);
             });
    else if (all)
        call([&] { return MPI_Allgather(send, n, type, receive, count, MPI_INT, comm); },
             [&](MPI_Request* r) { return MPI_Iallgather(send, n, type, receive, count, MPI_INT, comm, r); });
    else if (vector)
        call([&] { return MPI_Gatherv(send, n, type, receive, counts.data(), where.data(), MPI_INT, root, comm); },
             [&](MPI_Request* r) {
                 return MPI_Igatherv(send, n, type, receive, counts.data(), where.data(), MPI_INT, root, comm, r);
             });
    else
        call([&] { return MPI_Gather(send, n, type, receive, count, MPI_INT, root, comm); },
             [&](MPI_Request* r) { return MPI_Igather(send, n, type, receive, count, MPI_INT, root, comm, r); });
    if (receives)
        compare(all      ? vector ? "Allgatherv" : "Allgather"
                : vector ? "Gatherv"
                         : "Gather",
                got.data(), wanted.data(), got.size(), count, root);
}

void scatter(uint64_t key, uint64_t* state, bool vector) {
    int count = draw_count(state), root = random_below(state, size);
    bool in_place = random_below(state, 2) && rank == root;
    Blocks blocks(state, size, count);
    std::vector<int>&counts = blocks.counts, &where = blocks.displacements;
    if (!vector)
        for (int i = 0; i < size; i++) counts[i] = count, where[i] = i * count, blocks.total = size * count;
    std::vector<int> out(blocks.total, kFiller), got(counts[rank], kFiller);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++) out[where[r] + i] = element(key, r, i);
    std::vector<int> before = out, wanted = contribution(key, rank, counts[rank]);
    const void* send = rank == root ? out.data() : nullptr;
    void* receive = in_place ? MPI_IN_PLACE : got.data();
    int n = counts[rank];
    if (vector)
        call([&] { return MPI_Scatterv(send, counts.data(), where.data(), MPI_INT, receive, n, MPI_INT, root, comm); },
             [&](MPI_Request* r) {
                 return MPI_Iscatterv(send, counts.data(), where.data(), MPI_INT, receive, n, MPI_INT, root, comm, r);
             });
    else
        call([&] { return MPI_Scatter(send, count, MPI_INT, receive, n, MPI_INT, root, comm); },
             [&](MPI_Request* r) { return MPI_Iscatter(send, count, MPI_INT, receive, n, MPI_INT, root, comm, r); });
    if (!in_place) compare(vector ? "Scatterv" : "Scatter", got.data(), wanted.data(), n, count, root);
    if (rank == root) compare("Scatter's send buffer", out.data(), before.data(), out.size(), count, root);
}

// Compares an all-to-all; block_count(from, to) is the size of the block that `from` sends to `to`.
void alltoall(uint64_t key, uint64_t* state, int form) {  // 0 Alltoall, 1 Alltoallv, 2 Alltoallw
    int count = draw_count(state) / (form ? 2 : 1);
    bool in_place = random_below(state, 3) == 0;
    uint64_t matrix_seed = next_random(state);
    auto block_count = [&](int from, int to) {
        if (form == 0) return count;
        if (in_place) {  // MPI_IN_PLACE requires a symmetric matrix of counts
            int low = std::min(from, to), high = std::max(from, to);
            from = low, to = high;
        }
        uint64_t s = matrix_seed + from * 1009 + to;
        return random_below(&s, count + 1);
    };
    std::vector<int> send_counts(size), send_where(size), receive_counts(size), receive_where(size);
    int send_total = 0, receive_total = 0;
    for (int r = 0; r < size; r++) {
        send_counts[r] = block_count(rank, r), send_where[r] = send_total, send_total += send_counts[r] + (form ? 1 : 0);
        receive_counts[r] = block_count(r, rank), receive_where[r] = receive_total;
        receive_total += receive_counts[r] + (form ? 2 : 0);
    }
    std::vector<int> out(send_total, kFiller), in(receive_total, kFiller), wanted(receive_total, kFiller);
    for (int r = 0; r < size; r++) {
        for (int i = 0; i < send_counts[r]; i++) out[send_where[r] + i] = element(key + r, rank, i);
        for (int i = 0; i < receive_counts[r]; i++) wanted[receive_where[r] + i] = element(key + rank, r, i);
    }
    if (in_place)
        for (int r = 0; r < size; r++)
            for (int i = 0; i < receive_counts[r]; i++) in[receive_where[r] + i] = element(key + r, rank, i);
    const void* send = in_place ? MPI_IN_PLACE : out.data();
    void* receive = in.data();
    if (form == 0) {
        call([&] { return MPI_Alltoall(send, count, MPI_INT, receive, count, MPI_INT, comm); },
             [&](MPI_Request* r) { return MPI_Ialltoall(send, count, MPI_INT, receive, count, MPI_INT, comm, r); });
    } else if (form == 1) {
        call(
            [&] {
                return MPI_Alltoallv(send, send_counts.data(), send_where.data(), MPI_INT, receive, receive_counts.data(),
                                     receive_where.data(), MPI_INT, comm);
            },
            [&](MPI_Request* r) {
                return MPI_Ialltoallv(send, send_counts.data(), send_where.data(), MPI_INT, receive, receive_counts.data(),
                                      receive_where.data(), MPI_INT, comm, r);
            });
    } else {
        std::vector<int> send_bytes(size), receive_bytes(size);
        for (int r = 0; r < size; r++)
            send_bytes[r] = send_where[r] * (int)sizeof(int), receive_bytes[r] = receive_where[r] * (int)sizeof(int);
        std::vector<MPI_Datatype> types(size, MPI_INT);
        call(
            [&] {
                return MPI_Alltoallw(send, send_counts.data(), send_bytes.data(), types.data(), receive, receive_counts.data(),
                                     receive_bytes.data(), types.data(), comm);
            },
            [&](MPI_Request* r) {
                return MPI_Ialltoallw(send, send_counts.data(), send_bytes.data(), types.data(), receive, receive_counts.data(),
                                      receive_bytes.data(), types.data(), comm, r);
            });
    }
    compare(form == 0   ? "Alltoall"
            : form == 1 ? "Alltoallv"
                        : "Alltoallw",
            in.data(), wanted.data(), in.size(), count, in_place);
}

enum { kReduce, kAllreduce, kScan, kExscan, kReduceScatter, kReduceScatterBlock, kReductions };
const char* const kReductionNames[] = {"Reduce", "Allreduce", "Scan", "Exscan", "Reduce_scatter", "Reduce_scatter_block"};

template <class T>
struct Operation {
    const char* name;
    MPI_Op op;
    std::function<T(T, T)> apply;
};

template <class T>
void reduction(uint64_t key, uint64_t* state, int kind, MPI_Datatype type, const Operation<T>& operation) {
    int count = draw_count(state), root = random_below(state, size);
    bool in_place = random_below(state, 2);
    std::vector<int> counts(size);
    int total = count;
    if (kind == kReduceScatter || kind == kReduceScatterBlock) {
        count = std::min(count, 2000);
        total = 0;
        for (int& c : counts) total += c = kind == kReduceScatter ? random_below(state, count + 1) : count;
    }
    auto value = [&](int r, int i) { return (T)(element(key, r, i) % (operation.op == MPI_PROD ? 2 : 1000)); };
    std::vector<T> mine(total), result(total, (T)kFiller), wanted(total);
    for (int i = 0; i < total; i++) mine[i] = value(rank, i);
    int last = kind == kScan ? rank : kind == kExscan ? rank - 1 : size - 1;
    for (int i = 0; i < total && last >= 0; i++) {
        wanted[i] = value(0, i);
        for (int r = 1; r <= last; r++) wanted[i] = operation.apply(wanted[i], value(r, i));
    }
    if (kind == kReduce) in_place = in_place && rank == root;
    if (in_place) result = mine;
    const void* send = in_place ? MPI_IN_PLACE : (const void*)mine.data();
    void* receive = kind == kReduce && rank != root ? nullptr : result.data();
    MPI_Op op = operation.op;
    int offset = 0, n = total;
    switch (kind) {
        case kReduce:
            call([&] { return MPI_Reduce(send, receive, total, type, op, root, comm); },
                 [&](MPI_Request* r) { return MPI_Ireduce(send, receive, total, type, op, root, comm, r); });
            if (rank != root) n = 0;
            break;
        case kAllreduce:
            call([&] { return MPI_Allreduce(send, receive, total, type, op, comm); },
                 [&](MPI_Request* r) { return MPI_Iallreduce(send, receive, total, type, op, comm, r); });
            break;
        case kScan:
            call([&] { return MPI_Scan(send, receive, total, type, op, comm); },
                 [&](MPI_Request* r) { return MPI_Iscan(send, receive, total, type, op, comm, r); });
            break;
        case kExscan:
            call([&] { return MPI_Exscan(send, receive, total, type, op, comm); },
                 [&](MPI_Request* r) { return MPI_Iexscan(send, receive, total, type, op, comm, r); });
            if (rank == 0) n = 0;
            break;
        case kReduceScatter:
            call([&] { return MPI_Reduce_scatter(send, receive, counts.data(), type, op, comm); },
                 [&](MPI_Request* r) { return MPI_Ireduce_scatter(send, receive, counts.data(), type, op, comm, r); });
            break;
        default:
            call([&] { return MPI_Reduce_scatter_block(send, receive, count, type, op, comm); },
                 [&](MPI_Request* r) { return MPI_Ireduce_scatter_block(send, receive, count, type, op, comm, r); });
    }
    if (kind == kReduceScatter || kind == kReduceScatterBlock) {
        for (int r = 0; r < rank; r++) offset += counts[r];
        n = counts[rank];
    }
    for (int i = 0; i < n; i++)
        CHECK(result[i] == wanted[offset + i], "%s%s %s count %d root %d%s: element %d is %g, wanted %g",
              non_blocking ? "I" : "", kReductionNames[kind], operation.name, count, root, in_place ? " in place" : "", i,
              (double)result[i], (double)wanted[offset + i]);
}

void reductions(uint64_t key, uint64_t* state) {
    static const Operation<int> ints[] = {
        {"sum", MPI_SUM, [](int a, int b) { return a + b; }},
        {"max", MPI_MAX, [](int a, int b) { return std::max(a, b); }},
        {"min", MPI_MIN, [](int a, int b) { return std::min(a, b); }},
        {"bxor", MPI_BXOR, [](int a, int b) { return a ^ b; }},
        {"band", MPI_BAND, [](int a, int b) { return a & b; }},
        {"lor", MPI_LOR, [](int a, int b) { return (int)(a || b); }},
        {"prod", MPI_PROD, [](int a, int b) { return a * b; }},
    };
    static const Operation<double> doubles[] = {{"sum of doubles", MPI_SUM, [](double a, double b) { return a + b; }}};
    static const Operation<short> shorts[] = {{"max of shorts", MPI_MAX, [](short a, short b) { return std::max(a, b); }}};
    for (int kind = 0; kind < kReductions; kind++) {
        reduction<int>(key + kind, state, kind, MPI_INT, ints[random_below(state, 7)]);
        if (random_below(state, 2)) reduction<double>(key + kind, state, kind, MPI_DOUBLE, doubles[0]);
        if (random_below(state, 4) == 0) reduction<short>(key + kind, state, kind, MPI_SHORT, shorts[0]);
    }
}

// Different layouts on the two sides: the root sends a matrix's columns, and every rank receives rows.
void layouts(uint64_t key, uint64_t* state) {
    int n = 1 + random_below(state, 40), root = random_below(state, size);
    std::vector<int> matrix((size_t)n * n * size, kFiller), row(n * n, kFiller);
    MPI_Datatype column, columns;
    OK(MPI_Type_vector(n, 1, n * size, MPI_INT, &column));
    OK(MPI_Type_create_resized(column, 0, sizeof(int), &columns));
    OK(MPI_Type_commit(&columns));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n * size; j++) matrix[(size_t)i * n * size + j] = element(key, i, j);
    call([&] { return MPI_Scatter(matrix.data(), n, columns, row.data(), n * n, MPI_INT, root, comm); },
         [&](MPI_Request* r) { return MPI_Iscatter(matrix.data(), n, columns, row.data(), n * n, MPI_INT, root, comm, r); });
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) EXPECT_INT(row[j * n + i], element(key, i, rank * n + j));
    std::vector<int> back((size_t)n * n * size, kFiller);
    call([&] { return MPI_Allgather(row.data(), n * n, MPI_INT, back.data(), n, columns, comm); },
         [&](MPI_Request* r) { return MPI_Iallgather(row.data(), n * n, MPI_INT, back.data(), n, columns, comm, r); });
    compare("Allgather of columns", back.data(), matrix.data(), back.size(), n, root);
    std::vector<int> copy(back.size(), kFiller);
    if (rank == root) copy = matrix;
    call([&] { return MPI_Bcast(copy.data(), n * size, columns, root, comm); },
         [&](MPI_Request* r) { return MPI_Ibcast(copy.data(), n * size, columns, root, comm, r); });
    compare("Bcast of columns", copy.data(), matrix.data(), copy.size(), n, root);
    OK(MPI_Type_free(&columns));
    OK(MPI_Type_free(&column));
}

void round(uint64_t seed, int index) {
    uint64_t state = seed + index * 977, key = next_random(&state) >> 20;
    bcast(key + 1, &state);
    gather(key + 2, &state, false, false);
    gather(key + 3, &state, false, true);
    gather(key + 4, &state, true, false);
    gather(key + 5, &state, true, true);
    scatter(key + 6, &state, false);
    scatter(key + 7, &state, true);
    for (int form = 0; form < 3; form++) alltoall(key + 8, &state, form);
    reductions(key + 12, &state);
    layouts(key + 20, &state);
    call([&] { return MPI_Barrier(comm); }, [&](MPI_Request* r) { return MPI_Ibarrier(comm, r); });
}

}  // namespace

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    uint64_t seed = start_seed(31337);
    int world_rank, world_size;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &world_rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &world_size));
    int rounds = argc > 1 ? atoi(argv[1]) : world_size > 8 ? 3 : world_size > 4 ? 8 : 20;
    MPI_Comm reversed, part;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &reversed));
    OK(MPI_Comm_split(MPI_COMM_WORLD, world_rank % 3 == 1, world_rank, &part));
    const MPI_Comm comms[] = {MPI_COMM_WORLD, reversed, part};
    for (int i = 0; i < 2 * rounds; i++) {
        comm = comms[(i / 2) % 3];
        OK(MPI_Comm_rank(comm, &rank));
        OK(MPI_Comm_size(comm, &size));
        non_blocking = i % 2;
        round(seed, i);
    }
    OK(MPI_Comm_free(&part));
    OK(MPI_Comm_free(&reversed));
    OK(MPI_Finalize());
    return 0;
}
