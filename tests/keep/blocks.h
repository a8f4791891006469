// Shared by the tests of the store: blocks whose bytes depend on name, owner and version, and moves to the living processes.
#pragma once

#include <mpi-ext.h>
#include <signal.h>
#include <starling_keep.h>

#include "../mpi/check.h"

static const char* const kNames[] = {"field", "table", "a name of sixty-three bytes, the longest that a block can have."};
enum { kNameCount = 3, kMostBytes = 300000 };

/// Returns the length of an owner's block: different ones, also none, eager and rendezvous messages.
static size_t length_of(int name, int owner) {
    const size_t lengths[] = {0, 100, 70000, 5, 260000, 16384};
    return lengths[(unsigned)(name + 2 * owner) % 6];
}

static uint64_t key_of(int name, int owner, long long version) {
    return (uint64_t)(name * 1000003 + owner * 1009 + (int)version * 17);
}

#define KEEP_OK(call)                                                                                \
    do {                                                                                             \
        int code_ = (call);                                                                          \
        if (code_ != MPI_SUCCESS) fail_at(__FILE__, __LINE__, #call, "%s", starling_keep_message()); \
    } while (0)

/// Saves this rank's block. Changes the memory afterwards, which the store must not see.
__attribute__((unused)) static int save(starling_keep store, int name, int rank, long long version) {
    static char memory[kMostBytes];
    const size_t bytes = length_of(name, rank);
    fill_bytes(memory, bytes, key_of(name, rank, version));
    const int code = starling_keep_save(store, kNames[name], bytes ? memory : NULL, bytes, version);
    memset(memory, 0, sizeof memory);
    return code;
}

/// Fetches `owner`'s block of a version and checks each byte.
__attribute__((unused)) static void expect_block(starling_keep store, int name, int owner, long long version) {
    static char memory[kMostBytes];
    size_t bytes = sizeof memory;
    long long found = version;
    KEEP_OK(starling_keep_fetch(store, kNames[name], owner, memory, &bytes, &found));
    EXPECT_INT(found, version);
    EXPECT_INT(bytes, length_of(name, owner));
    const long wrong = first_wrong_byte(memory, bytes, key_of(name, owner, version));
    CHECK(wrong < 0, "byte %ld of block %s of owner %d, version %lld", wrong, kNames[name], owner, version);
}

/// Checks that all members of `comm` have the same value.
__attribute__((unused)) static void expect_same(long long value, MPI_Comm comm) {
    long long least, most;
    OK(MPI_Allreduce(&value, &least, 1, MPI_LONG_LONG, MPI_MIN, comm));
    OK(MPI_Allreduce(&value, &most, 1, MPI_LONG_LONG, MPI_MAX, comm));
    EXPECT_INT(least, most);
}

/// Replaces `comm` by a communicator of its living members, and moves the store there, until no member fails meanwhile.
__attribute__((unused)) static void move_to_living(starling_keep store, MPI_Comm* comm) {
    for (int code = MPIX_ERR_PROC_FAILED; code;) {
        MPI_Comm living;
        OK(MPIX_Comm_revoke(*comm));
        OK(MPIX_Comm_shrink(*comm, &living));
        OK(MPI_Comm_free(comm));
        *comm = living;
        OK(MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN));
        code = starling_keep_move(store, *comm);
        CHECK(!code || code == MPIX_ERR_PROC_FAILED || code == MPIX_ERR_REVOKED, "%s", starling_keep_message());
    }
}

__attribute__((unused)) static long long latest_of(starling_keep store, int name) {
    long long version;
    KEEP_OK(starling_keep_latest(store, name < 0 ? NULL : kNames[name], &version, NULL));
    return version;
}

/// Saves versions of all blocks from `version` on until a save fails.
__attribute__((unused)) static void save_until_failure(starling_keep store, MPI_Comm comm, long long version) {
    int rank, code = MPI_SUCCESS;
    OK(MPI_Comm_rank(comm, &rank));
    for (int i = 0; !code; ++i) code = save(store, i % kNameCount, rank, version + i / kNameCount);
    CHECK(code == MPIX_ERR_PROC_FAILED || code == MPIX_ERR_REVOKED, "%s", starling_keep_message());
}

/// Checks every block of the latest version that all names have, and returns it.
__attribute__((unused)) static long long expect_latest(starling_keep store, MPI_Comm comm) {
    const long long version = latest_of(store, -1);
    expect_same(version, comm);
    CHECK(version >= 0, "no version counts");
    for (int name = 0; name < kNameCount; ++name) {
        // The number of owners differs between names if the last saves were made by different communicators.
        for (int owner = 0;; ++owner) {
            size_t bytes = 0;
            long long found = version;
            if (starling_keep_fetch(store, kNames[name], owner, NULL, &bytes, &found) == MPI_ERR_ARG) break;
            expect_block(store, name, owner, version);
        }
    }
    return version;
}
