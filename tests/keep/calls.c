// The store without failures: versions that count, going back, lengths, bounds, arguments, and moves to larger and smaller communicators.
#include "blocks.h"

static int rank, size;

static void expect_message(const char* part) {
    CHECK(strstr(starling_keep_message(), part), "the message is: %s", starling_keep_message());
}

static void test_versions(void) {
    starling_keep store;
    KEEP_OK(starling_keep_create(MPI_COMM_WORLD, STARLING_KEEP_UNBOUNDED, &store));
    EXPECT_INT(latest_of(store, 0), STARLING_KEEP_NONE);
    EXPECT_INT(latest_of(store, -1), STARLING_KEEP_NONE);
    for (int version = 0; version < 7; version += 2)
        for (int name = 0; name < kNameCount; ++name) KEEP_OK(save(store, name, rank, version));
    for (int name = 0; name < kNameCount; ++name)
        for (int owner = 0; owner < size; ++owner)
            for (int version = 4; version < 7; version += 2) expect_block(store, name, (owner + rank) % size, version);
    // Names advance one by one; the latest version of all is the one to return to.
    KEEP_OK(save(store, 0, rank, 8));
    EXPECT_INT(latest_of(store, 0), 8);
    EXPECT_INT(latest_of(store, -1), 6);
    KEEP_OK(save(store, 0, rank, 8));
    EXPECT_INT(latest_of(store, -1), 6);
    KEEP_OK(save(store, 0, rank, 7));
    EXPECT_INT(latest_of(store, 0), 7);
    expect_block(store, 0, 0, 6);
    expect_block(store, 0, size - 1, 7);
    // The version before the latest is dropped by the next save, and no version is newer.
    KEEP_OK(save(store, 0, rank, 9));
    size_t bytes = 0;
    long long version = 6;
    EXPECT_INT(starling_keep_fetch(store, kNames[0], 0, NULL, &bytes, &version), MPI_ERR_ARG);
    expect_message("version 6 of block \"field\" is not kept; the latest that counts is 9");
    KEEP_OK(starling_keep_free(&store));
    CHECK(!store, "a freed store is not NULL");
    KEEP_OK(starling_keep_free(&store));
}

static void test_lengths(void) {
    starling_keep store;
    char memory[100] = "x";
    KEEP_OK(starling_keep_create(MPI_COMM_WORLD, STARLING_KEEP_UNBOUNDED, &store));
    KEEP_OK(starling_keep_save(store, "a", memory, 50 + (size_t)rank, 3));
    size_t bytes = 7;
    long long version = STARLING_KEEP_LATEST;
    KEEP_OK(starling_keep_fetch(store, "a", size - 1, NULL, &bytes, &version));
    EXPECT_INT(bytes, 50 + size - 1);
    EXPECT_INT(version, 3);
    // Too little memory is an error of the process that has too little.
    bytes = rank ? 100 : 49;
    const int code = starling_keep_fetch(store, "a", 0, memory, &bytes, &version);
    EXPECT_INT(code, rank ? MPI_SUCCESS : MPI_ERR_TRUNCATE);
    EXPECT_INT(bytes, 50);
    // A process without need of a block.
    bytes = 77;
    KEEP_OK(starling_keep_fetch(store, "a", rank ? 0 : MPI_PROC_NULL, NULL, &bytes, &version));
    EXPECT_INT(bytes, rank ? 50 : 77);
    KEEP_OK(starling_keep_free(&store));
}

/// The bound suffices for two versions of the own block and of the partner's, and not for more.
static void test_bound(void) {
    starling_keep store;
    static char memory[1000];
    const size_t needed = size > 1 ? 4000 : 2000;
    KEEP_OK(starling_keep_create(MPI_COMM_WORLD, needed - (rank == size - 1), &store));
    KEEP_OK(starling_keep_save(store, "a", memory, 1000, 0));
    EXPECT_INT(starling_keep_save(store, "a", memory, 1000, 1), MPI_ERR_NO_MEM);
    char text[100];
    snprintf(text, sizeof text, "needs 1 bytes more than rank %d has within its bound of %zu", size - 1, needed - 1);
    expect_message(text);
    EXPECT_INT(latest_of(store, 0), STARLING_KEEP_NONE);
    long long version;
    KEEP_OK(starling_keep_latest(store, "a", &version, NULL));
    EXPECT_INT(version, 0);
    KEEP_OK(starling_keep_save(store, "a", memory, 999, 1));
    for (int v = 2; v < 5; ++v) KEEP_OK(starling_keep_save(store, "a", memory, 999, v));
    KEEP_OK(starling_keep_free(&store));
}

static void test_arguments(void) {
    starling_keep store = NULL;
    char memory[10] = "";
    long long version = 0;
    size_t bytes = sizeof memory;
    EXPECT_INT(starling_keep_save(store, "a", memory, 10, 0), MPI_ERR_ARG);
    expect_message("starling_keep_create");
    EXPECT_INT(starling_keep_create(MPI_COMM_NULL, 0, &store), MPI_ERR_COMM);
    EXPECT_INT(starling_keep_create(MPI_COMM_WORLD, 0, NULL), MPI_ERR_ARG);
    KEEP_OK(starling_keep_create(MPI_COMM_WORLD, STARLING_KEEP_UNBOUNDED, &store));
    EXPECT_INT(starling_keep_save(store, "", memory, 10, 0), MPI_ERR_ARG);
    EXPECT_INT(starling_keep_save(store, "a name of sixty-four bytes, one more than a block may have......", memory, 10, 0),
               MPI_ERR_ARG);
    EXPECT_INT(starling_keep_save(store, "a", memory, 10, -3), MPI_ERR_ARG);
    EXPECT_INT(starling_keep_save(store, "a", rank == size - 1 ? NULL : memory, 10, 0), MPI_ERR_ARG);
    EXPECT_INT(starling_keep_fetch(store, "a", 0, memory, &bytes, &version), MPI_ERR_ARG);
    expect_message("no version of block \"a\" has been saved");
    if (size > 1) {
        EXPECT_INT(starling_keep_save(store, "a", memory, 10, rank == 0), MPI_ERR_ARG);
        EXPECT_INT(starling_keep_save(store, rank ? "a" : "b", memory, 10, 0), MPI_ERR_ARG);
    }
    KEEP_OK(starling_keep_latest(store, "a", &version, NULL));
    EXPECT_INT(version, STARLING_KEEP_NONE);
    KEEP_OK(starling_keep_save(store, "a", memory, 10, 1));
    version = STARLING_KEEP_LATEST;
    EXPECT_INT(starling_keep_fetch(store, "a", rank ? 0 : size, memory, &bytes, &version), MPI_ERR_ARG);
    if (size > 1) EXPECT_INT(starling_keep_fetch(store, rank ? "a" : "b", 0, memory, &bytes, &version), MPI_ERR_ARG);
    KEEP_OK(starling_keep_fetch(store, "a", 0, memory, &bytes, &version));
    KEEP_OK(starling_keep_free(&store));
}

enum { kKeptBytes = 100 };

static int save_kept(starling_keep store, const char* name, size_t bytes, long long version) {
    static char memory[kKeptBytes + 1];
    fill_bytes(memory, bytes, (uint64_t)(10 * version + rank));
    return starling_keep_save(store, name, memory, bytes, version);
}

/// Checks that the versions 5 and 6 of "a" are there, and no newer one.
static void expect_kept(starling_keep store) {
    long long latest;
    KEEP_OK(starling_keep_latest(store, "a", &latest, NULL));
    EXPECT_INT(latest, 6);
    for (long long version = 5; version < 7; ++version) {
        char memory[kKeptBytes];
        size_t bytes = sizeof memory;
        const int owner = (rank + 1) % size;
        KEEP_OK(starling_keep_fetch(store, "a", owner, memory, &bytes, &version));
        CHECK(first_wrong_byte(memory, bytes, (uint64_t)(10 * version + owner)) < 0, "the block of version %lld", version);
    }
}

/// Saves that fail because of arguments or a bound drop no version, also not in processes whose neighbours save the same.
static void test_failed_saves(void) {
    starling_keep store;
    const size_t bound = 2 * kKeptBytes * (size > 1 ? 2 : 1);
    KEEP_OK(starling_keep_create(MPI_COMM_WORLD, bound, &store));
    for (int version = 5; version < 7; ++version) KEEP_OK(save_kept(store, "a", kKeptBytes, version));
    for (int odd = 0; size > 1 && odd < size; ++odd) {
        const int is_odd = rank == odd;
        EXPECT_INT(save_kept(store, "a", kKeptBytes, is_odd ? 6 : 7), MPI_ERR_ARG);
        expect_message("version");
        expect_kept(store);
        EXPECT_INT(save_kept(store, "a", kKeptBytes, is_odd ? 7 : 6), MPI_ERR_ARG);
        expect_kept(store);
        EXPECT_INT(save_kept(store, is_odd ? "b" : "a", 0, 6), MPI_ERR_ARG);
        expect_kept(store);
    }
    for (int lacking = 0; lacking < size; ++lacking)
        for (int version = 5; version < 8; ++version) {
            EXPECT_INT(save_kept(store, "a", kKeptBytes + (rank == lacking), version), MPI_ERR_NO_MEM);
            expect_message("needs 1 bytes more than rank");
            expect_kept(store);
        }
    EXPECT_INT(starling_keep_save(store, "a", NULL, rank == size - 1, 6), MPI_ERR_ARG);
    expect_kept(store);
    KEEP_OK(save_kept(store, "a", kKeptBytes, 7));
    KEEP_OK(starling_keep_free(&store));
}

/// Without failures the last rank leaves and comes back.
static void test_moves(void) {
    starling_keep store;
    MPI_Comm fewer;
    const int leaves = rank == size - 1;
    KEEP_OK(starling_keep_create(MPI_COMM_WORLD, STARLING_KEEP_UNBOUNDED, &store));
    KEEP_OK(save(store, 0, rank, 1));
    OK(MPI_Comm_split(MPI_COMM_WORLD, leaves, 0, &fewer));
    if (leaves)
        KEEP_OK(starling_keep_free(&store));
    else
        KEEP_OK(starling_keep_move(store, fewer));
    for (int owner = 0; !leaves && owner < size; ++owner) expect_block(store, 0, owner, 1);
    if (leaves)
        KEEP_OK(starling_keep_create(MPI_COMM_WORLD, STARLING_KEEP_UNBOUNDED, &store));
    else
        KEEP_OK(starling_keep_move(store, MPI_COMM_WORLD));
    OK(MPI_Comm_free(&fewer));
    for (int owner = 0; owner < size; ++owner) expect_block(store, 0, owner, 1);
    KEEP_OK(save(store, 0, rank, 2));
    for (int owner = 0; owner < size; ++owner) expect_block(store, 0, owner, 2);
    KEEP_OK(starling_keep_free(&store));
}

/// Rank 0 has no memory for the second copy of the block of its new ward. The store moves all the same.
static void test_bound_of_move(void) {
    starling_keep store;
    MPI_Comm fewer;
    static char memory[1000];
    const int leaves = rank == size - 1;
    KEEP_OK(starling_keep_create(MPI_COMM_WORLD, rank ? STARLING_KEEP_UNBOUNDED : 4000, &store));
    for (int version = 0; version < 2; ++version) {
        fill_bytes(memory, sizeof memory, key_of(0, rank, version));
        KEEP_OK(starling_keep_save(store, "a", memory, sizeof memory, version));
    }
    OK(MPI_Comm_split(MPI_COMM_WORLD, leaves, 0, &fewer));
    if (leaves) {
        KEEP_OK(starling_keep_free(&store));
        OK(MPI_Comm_free(&fewer));
        return;
    }
    EXPECT_INT(starling_keep_move(store, fewer), MPI_ERR_NO_MEM);
    expect_message("the store has moved, but rank 0 needs 2000 bytes more than its bound");
    for (int owner = 0; owner < size; ++owner) {
        for (long long version = 0; version < 2; ++version) {
            size_t bytes = sizeof memory;
            KEEP_OK(starling_keep_fetch(store, "a", owner, memory, &bytes, &version));
            EXPECT_INT(first_wrong_byte(memory, bytes, key_of(0, owner, version)), -1);
        }
    }
    // A save drops a version, so its copies fit; the second save drops the last block of the process that has left.
    for (int version = 2; version < 4; ++version) KEEP_OK(starling_keep_save(store, "a", memory, sizeof memory, version));
    KEEP_OK(starling_keep_move(store, fewer));
    KEEP_OK(starling_keep_free(&store));
    OK(MPI_Comm_free(&fewer));
}

/// A store moves to a revoked communicator, where only a further move succeeds.
static void test_revoked(void) {
    starling_keep store;
    MPI_Comm revoked;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &revoked));
    KEEP_OK(starling_keep_create(MPI_COMM_WORLD, STARLING_KEEP_UNBOUNDED, &store));
    KEEP_OK(save(store, 0, rank, 1));
    OK(MPIX_Comm_revoke(revoked));
    KEEP_OK(starling_keep_move(store, revoked));
    size_t bytes = 0;
    long long version = 1;
    EXPECT_INT(save(store, 0, rank, 2), MPIX_ERR_REVOKED);
    EXPECT_INT(starling_keep_fetch(store, kNames[0], 0, NULL, &bytes, &version), MPIX_ERR_REVOKED);
    KEEP_OK(starling_keep_move(store, MPI_COMM_WORLD));
    expect_block(store, 0, (rank + 1) % size, 1);
    KEEP_OK(save(store, 0, rank, 2));
    KEEP_OK(starling_keep_free(&store));
    OK(MPI_Comm_free(&revoked));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    test_versions();
    test_lengths();
    test_bound();
    test_arguments();
    test_failed_saves();
    test_revoked();
    if (size > 1) test_moves();
    if (size > 2 && on_one_host()) test_bound_of_move();
    OK(MPI_Finalize());
    return 0;
}
