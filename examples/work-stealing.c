/* An unbalanced tree whose shape is not known in advance, counted by processes that steal work from each other. Each has a queue in its
 * window. A thief locks it by MPI_Compare_and_swap and takes half of it, while the owner continues with the nodes in its private stack. The
 * count is complete when a counter on rank 0, of known but not yet visited nodes, is 0.
 *
 *     mpiexec -n 4 ./work-stealing [branches of the root] */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint64_t Node; /* The hash that identifies a node; its children follow from it. */

enum { kChildren = 8, kShared = 64, kKept = 16, kBatch = 64, kWork = 200 };
/* Layout of a window, in words of 8 bytes. */
enum { kLock, kHead, kTail, kOpen, kTasks, kWords = kTasks + kShared };

typedef struct {
    MPI_Win window;
    int rank, size;
    Node* stack;
    size_t depth, room;
    int64_t owed; /* nodes found minus nodes visited that the counter does not include yet */
    long visited, steals;
} Worker;

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Returns the number of a node's children. Most nodes have none; 124 of 1,000 have eight. So a branch has 125 nodes on average, and some
 * have thousands. Computing the number takes kWork rounds of hashing. */
static int children(Node node) {
    for (int i = 0; i < kWork; ++i) node = mix(node);
    return node % 1000 < 124 ? kChildren : 0;
}
static Node child(Node node, int i) { return mix(node * 31 + (uint64_t)i + 1); }

static long count_alone(long branches) {
    size_t depth = 0, room = 1024;
    Node* stack = malloc(room * sizeof *stack);
    long count = 1;
    for (long b = 0; b < branches; ++b) {
        stack[depth++] = mix((uint64_t)b);
        while (depth > 0) {
            const Node node = stack[--depth];
            ++count;
            if (depth + kChildren > room) stack = realloc(stack, (room *= 2) * sizeof *stack);
            const int branches = children(node);
            for (int i = 0; i < branches; ++i) stack[depth++] = child(node, i);
        }
    }
    free(stack);
    return count;
}

static int64_t fetch(Worker* w, int who, int where, int64_t add) {
    int64_t before;
    MPI_Fetch_and_op(&add, &before, MPI_INT64_T, who, where, add ? MPI_SUM : MPI_NO_OP, w->window);
    MPI_Win_flush(who, w->window);
    return before;
}

static void store(Worker* w, int who, int where, int64_t value) {
    MPI_Accumulate(&value, 1, MPI_INT64_T, who, where, 1, MPI_INT64_T, MPI_REPLACE, w->window);
    MPI_Win_flush(who, w->window);
}

static int try_lock(Worker* w, int who) {
    const int64_t no = 0, yes = 1;
    int64_t before;
    MPI_Compare_and_swap(&yes, &no, &before, MPI_INT64_T, who, kLock, w->window);
    MPI_Win_flush(who, w->window);
    return before == 0;
}

static void push(Worker* w, Node node) {
    if (w->depth == w->room) w->stack = realloc(w->stack, (w->room *= 2) * sizeof(Node));
    w->stack[w->depth++] = node;
}

/* Adds the nodes found to the counter on rank 0. Must be called before another process can visit them. */
static void settle(Worker* w) {
    if (w->owed) fetch(w, 0, kOpen, w->owed);
    w->owed = 0;
}

/* Takes half of the queue of another process, or all of this process's own. */
static void take(Worker* w, int who) {
    if (fetch(w, who, kHead, 0) >= fetch(w, who, kTail, 0) || !try_lock(w, who)) return;
    const int64_t head = fetch(w, who, kHead, 0), left = fetch(w, who, kTail, 0) - head;
    const int64_t count = who == w->rank ? left : (left + 1) / 2;
    Node got[kShared];
    if (count > 0) {
        MPI_Get(got, (int)count, MPI_UINT64_T, who, kTasks + head, (int)count, MPI_UINT64_T, w->window);
        MPI_Win_flush(who, w->window);
        store(w, who, kHead, head + count);
        w->steals += who != w->rank;
    }
    store(w, who, kLock, 0);
    for (int64_t i = 0; i < count; ++i) push(w, got[i]);
}

/* Moves the oldest nodes from the stack to this process's queue if the queue is empty. The oldest nodes tend to have the largest subtrees.
 */
static void offer(Worker* w) {
    if (w->depth < kKept + kShared || fetch(w, w->rank, kHead, 0) < fetch(w, w->rank, kTail, 0) || !try_lock(w, w->rank))
        return;
    settle(w);
    MPI_Put(w->stack, kShared, MPI_UINT64_T, w->rank, kTasks, kShared, MPI_UINT64_T, w->window);
    MPI_Win_flush(w->rank, w->window);
    w->depth -= kShared;
    for (size_t i = 0; i < w->depth; ++i) w->stack[i] = w->stack[i + kShared];
    store(w, w->rank, kHead, 0);
    store(w, w->rank, kTail, kShared);
    store(w, w->rank, kLock, 0);
}

static void work(Worker* w) {
    for (uint64_t turn = (uint64_t)w->rank;; ++turn) {
        for (int i = 0; i < kBatch && w->depth > 0; ++i) {
            const Node node = w->stack[--w->depth];
            const int branches = children(node);
            for (int c = 0; c < branches; ++c) push(w, child(node, c));
            ++w->visited;
            w->owed += branches - 1;
        }
        offer(w);
        if (w->depth > 0) continue;
        settle(w);
        take(w, w->rank);
        if (w->depth > 0 || w->size == 1) {
            if (w->depth == 0) return;
            continue;
        }
        take(w, (int)(mix(turn) % (uint64_t)w->size));
        if (w->depth == 0 && fetch(w, 0, kOpen, 0) == 0) return;
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const long branches = argc > 1 ? atol(argv[1]) : 2000;
    Worker w = {.room = 1024};
    MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &w.size);
    w.stack = malloc(w.room * sizeof(Node));
    int64_t* words;
    MPI_Win_allocate(kWords * sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &words, &w.window);
    for (int i = 0; i < kWords; ++i) words[i] = 0;
    if (w.rank == 0) {
        words[kOpen] = branches;
        w.visited = 1;
        for (long b = 0; b < branches; ++b) push(&w, mix((uint64_t)b));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, w.window);

    double time = MPI_Wtime();
    work(&w);
    MPI_Barrier(MPI_COMM_WORLD);
    time = MPI_Wtime() - time;

    long sums[2] = {w.visited, w.steals}, all[2];
    MPI_Reduce(sums, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    const long expected = w.rank == 0 ? count_alone(branches) : 0;
    const int wrong = w.rank == 0 && all[0] != expected;
    if (w.rank == 0)
        printf("%ld nodes, %s; %ld thefts; %.3f million nodes a second\n", all[0],
               wrong ? "WRONG" : "the same as the serial count", all[1], 1e-6 * (double)all[0] / time);
    MPI_Win_unlock_all(w.window);
    MPI_Win_free(&w.window);
    free(w.stack);
    MPI_Finalize();
    return wrong;
}
