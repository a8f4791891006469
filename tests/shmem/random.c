// Random programs: all PEs draw the same program from a seed (random [SEED [ROUNDS]], or TEST_SEED), execute their parts of it, and compare
// memory with a model of all PEs. On every PE each other PE has an array, its lot. In each round PEs change their lots in many ways and
// read lots of the previous round. All PEs also use teams, locks and the heap together.
#include "check.h"

enum { MOST = 16, WORDS = 24, OPERATIONS = 8, BLOCKS = 12 };

// lot[s]: changed by PE s only. past[s]: lot[s] at the end of the previous round, for readers.
struct Memory {
    long lot[MOST][WORDS], past[MOST][WORDS];
    long sum, bits;          // words that all PEs change with commutative operations
    uint64_t arrived[MOST];  // signals, indexed by the PE that sends them
};
static struct Memory variables;
static struct Memory model[MOST];
static struct Memory* memory;
static long lock, guarded, guarded_model;
static int me, n;
static uint64_t state, rounds_done;

static unsigned draw(unsigned below) { return (unsigned)(next_random(&state) % below); }

struct Operation {
    unsigned kind, to, at, count, stride, ordered;
    long value;
};

static struct Operation draw_operation(unsigned kinds) {
    struct Operation o = {
        draw(kinds), draw((unsigned)n), draw(WORDS / 2), 1 + draw(4), 1 + draw(3), draw(2), (long)(next_random(&state) >> 2)};
    return o;
}

// Returns the index of the i-th of the o.count words that a put, strided or not, changes.
static unsigned word_of(const struct Operation* o, unsigned i) { return o->at + (o->kind == 2 ? i * o->stride : i); }

static void change_model(const struct Operation* o, int from) {
    struct Memory* there = &model[o->to];
    long* lot = there->lot[from];
    switch (o->kind) {
        case 4:
            lot[o->at] = o->value;
            break;
        case 5:
            lot[o->at] += o->value % 1000;
            break;
        case 6:
            lot[o->at] = lot[o->at] % 2 == 0 ? o->value : lot[o->at];
            break;
        case 7:
            there->sum += o->value % 1000;
            break;
        case 8:
            there->bits ^= o->value;
            break;
        default:
            for (unsigned i = 0; i < o->count; i++) lot[word_of(o, i)] = o->value + i;
            if (o->kind == 3) there->arrived[from] += 1;
    }
}

// Carries out the operation while the model still has the state before it, so that the fetched value is known.
static void carry_out(const struct Operation* o, long* source) {
    const int to = (int)o->to;
    long* there = memory->lot[me] + o->at;
    const long before = model[o->to].lot[me][o->at];
    for (unsigned i = 0; i < o->count; i++) source[i] = o->value + i;
    switch (o->kind) {
        case 0:
            shmem_long_put(there, source, o->count, to);
            memset(source, 0x55, o->count * sizeof *source);  // after the call the source may be reused
            break;
        case 1:
            shmem_putmem_nbi(there, source, o->count * sizeof *source, to);
            break;
        case 2:
            shmem_long_iput(there, source, o->stride, 1, o->count, to);
            break;
        case 3:
            shmem_long_put_signal_nbi(there, source, o->count, &memory->arrived[me], 1, SHMEM_SIGNAL_ADD, to);
            break;
        case 4:
            EXPECT_INT(shmem_long_atomic_swap(there, o->value, to), before);
            break;
        case 5:
            EXPECT_INT(shmem_long_atomic_fetch_add(there, o->value % 1000, to), before);
            break;
        case 6:
            EXPECT_INT(shmem_long_atomic_compare_swap(there, before % 2 == 0 ? before : before + 1, o->value, to), before);
            break;
        case 7:
            shmem_long_atomic_add(&memory->sum, o->value % 1000, to);
            break;
        case 8:
            shmem_ulong_atomic_xor((unsigned long*)&memory->bits, (unsigned long)o->value, to);
            break;
    }
    if (o->ordered)
        shmem_quiet();
    else
        shmem_fence();
}

// Every PE's operations: the model applies them one after the other, the PEs run them concurrently.
static void change(void) {
    enum { KINDS = 9 };
    static long sources[OPERATIONS][4];
    for (int from = 0; from < n; from++) {
        const unsigned count = draw(OPERATIONS);
        for (unsigned i = 0; i < count; i++) {
            const struct Operation o = draw_operation(KINDS);
            if (from == me) carry_out(&o, sources[i]);
            change_model(&o, from);
        }
    }
}

// A signal arrives after its data, and the last signal after all data before it.
static void wait_for_signals(void) {
    for (int from = 0; from < n; from++) {
        const uint64_t wanted = model[me].arrived[from];
        if (draw(2))
            shmem_uint64_wait_until(&memory->arrived[from], SHMEM_CMP_GE, wanted);
        else
            while (!shmem_uint64_test(&memory->arrived[from], SHMEM_CMP_EQ, wanted)) {}
    }
}

static void look_at_own(void) {
    for (int from = 0; from < n; from++)
        for (int i = 0; i < WORDS; i++)
            CHECK(memory->lot[from][i] == model[me].lot[from][i], "round %llu, word %d of PE %d: is %lx, wanted %lx",
                  (unsigned long long)rounds_done, i, from, memory->lot[from][i], model[me].lot[from][i]);
    EXPECT_INT(memory->sum, model[me].sum);
    EXPECT_INT(memory->bits, model[me].bits);
    memcpy(memory->past, memory->lot, sizeof memory->past);
    for (int pe = 0; pe < n; pe++) memcpy(model[pe].past, model[pe].lot, sizeof model[pe].past);
}

// Reads random words of other PEs' lots as they were after the previous round; each PE reads different ones.
static void look_at_others(void) {
    uint64_t own = state + (uint64_t)me;
    long got[4 * 3];
    for (int i = 0; i < 4; i++) {
        const unsigned pe = (unsigned)(next_random(&own) % (unsigned)n), of = (unsigned)(next_random(&own) % (unsigned)n);
        const unsigned at = (unsigned)(next_random(&own) % (WORDS / 2)), kind = (unsigned)(next_random(&own) % 4);
        const long *there = memory->past[of] + at, *wanted = model[pe].past[of] + at;
        const int step = kind == 2 ? 3 : 1;
        memset(got, 0x77, sizeof got);
        if (kind == 0) shmem_getmem(got, there, 4 * sizeof *got, (int)pe);
        if (kind == 1) shmem_long_get_nbi(got, there, 4, (int)pe);
        if (kind == 2) shmem_long_iget(got, there, 1, step, 4, (int)pe);
        if (kind == 3)
            for (int j = 0; j < 4; j++) got[j] = shmem_long_g(there + j, (int)pe);
        shmem_quiet();
        for (int j = 0; j < 4; j++) EXPECT_INT(got[j], wanted[j * step]);
    }
}

static void meet_in_a_team(void) {
    static long in[MOST * 2], out[MOST * 2];
    const int stride = 1 + (int)draw(3), first = (int)draw((unsigned)n), room = (n - 1 - first) / stride + 1;
    const int size = 1 + (int)draw((unsigned)room), root = (int)draw((unsigned)size);
    const long value = draw(1000);
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, first, stride, size, NULL, 0, &team);
    const int mine = shmem_team_my_pe(team);
    CHECK((team != SHMEM_TEAM_INVALID) == (me >= first && (me - first) % stride == 0 && (me - first) / stride < size),
          "membership");
    if (team == SHMEM_TEAM_INVALID) return;
    for (int i = 0; i < 2 * size; i++) in[i] = value + mine * 100 + i;
    EXPECT_INT(shmem_long_sum_reduce(team, out, in, 2), 0);
    for (int i = 0; i < 2; i++) EXPECT_INT(out[i], size * (value + i) + 100 * size * (size - 1) / 2);
    EXPECT_INT(shmem_team_sync(team), 0);
    EXPECT_INT(shmem_long_broadcast(team, out, in, 2, root), 0);
    for (int i = 0; i < 2; i++) EXPECT_INT(out[i], value + root * 100 + i);
    EXPECT_INT(shmem_team_sync(team), 0);
    EXPECT_INT(shmem_long_alltoall(team, out, in, 2), 0);
    for (int i = 0; i < 2 * size; i++) EXPECT_INT(out[i], value + i / 2 * 100 + mine * 2 + i % 2);
    EXPECT_INT(shmem_team_sync(team), 0);
    EXPECT_INT(shmem_long_fcollect(team, out, in, 1), 0);
    for (int i = 0; i < size; i++) EXPECT_INT(out[i], value + i * 100);
    shmem_team_destroy(team);
}

static void count_behind_a_lock(void) {
    const int home = (int)draw((unsigned)n);
    shmem_long_p(&guarded, guarded_model, home);
    shmem_barrier_all();
    shmem_set_lock(&lock);
    const long now = shmem_long_g(&guarded, home);
    shmem_long_p(&guarded, now + me + 1, home);
    shmem_clear_lock(&lock);
    guarded_model += n * (n + 1) / 2;
    shmem_barrier_all();
    EXPECT_INT(shmem_long_g(&guarded, home), guarded_model);
    shmem_barrier_all();
}

static struct {
    long* words;
    size_t count;
    long value;
} blocks[BLOCKS];

static void look_at_block(int which, int pe) {
    const size_t last = blocks[which].count - 1;
    EXPECT_INT(shmem_long_g(blocks[which].words, pe), blocks[which].value + pe);
    EXPECT_INT(blocks[which].words[last], blocks[which].value + me);
}

// All PEs allocate, resize or free the same block; its contents must be kept.
static void change_heap(void) {
    const int which = (int)draw(BLOCKS), pe = (int)draw((unsigned)n);
    const size_t count = 1 + draw(draw(4) ? 100 : 300000), kept = blocks[which].count;
    const unsigned how = draw(3);
    if (kept != 0) look_at_block(which, pe);
    if (kept != 0 && how == 0) {
        shmem_free(blocks[which].words);
        blocks[which].count = 0;
        return;
    }
    if (kept != 0) {
        blocks[which].words = shmem_realloc(blocks[which].words, count * sizeof(long));
        CHECK(blocks[which].words != NULL, "no %zu words", count);
        EXPECT_INT(blocks[which].words[0], blocks[which].value + me);
    } else {
        blocks[which].words = how == 0   ? shmem_malloc(count * sizeof(long))
                              : how == 1 ? shmem_calloc(count, sizeof(long))
                                         : shmem_align(4096, count * sizeof(long));
        CHECK(blocks[which].words != NULL, "no %zu words", count);
        if (how == 1) EXPECT_INT(blocks[which].words[count - 1], 0);
        if (how == 2) EXPECT_INT((uintptr_t)blocks[which].words % 4096, 0);
    }
    shmem_barrier_all();
    blocks[which].count = count;
    blocks[which].value = (long)draw(1000000);
    for (size_t i = 0; i < count; i++) blocks[which].words[i] = blocks[which].value + me;
    shmem_barrier_all();
}

static void play_round(void) {
    change();
    wait_for_signals();
    shmem_barrier_all();
    look_at_own();
    shmem_barrier_all();
    look_at_others();
    if (draw(3) == 0) meet_in_a_team();
    if (draw(4) == 0) count_behind_a_lock();
    if (draw(2) == 0) change_heap();
    shmem_barrier_all();
    rounds_done++;
}

int main(int argc, char** argv) {
    const char* said = argc > 1 ? argv[1] : getenv("TEST_SEED");
    state = said ? strtoull(said, NULL, 0) : 1;
    const unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 0) : 60;
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    CHECK(n <= MOST, "too many");
    struct Memory* const heap = shmem_calloc(1, sizeof *heap);
    memory = draw(2) ? heap : &variables;
    for (unsigned long i = 0; i < rounds; i++) play_round();
    shmem_free(heap);
    shmem_finalize();
    return 0;
}
