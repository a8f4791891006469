// A fetch returns an error on all processes if they disagree about the version that they have: this test drops, renumbers and changes versions
// in one process's store, behind the library's back.
#include <cstring>

#include "keep/starling_keep.h"
#include "keep/store.h"

#include "../mpi/check.h"

namespace {

int rank, size;

/// Creates a store with the versions 5 and 6 of one block.
starling_keep make_store() {
    starling_keep store;
    char memory[8] = "abcdefg";
    OK(starling_keep_create(MPI_COMM_WORLD, STARLING_KEEP_UNBOUNDED, &store));
    for (int version = 5; version < 7; ++version) OK(starling_keep_save(store, "a", memory, sizeof memory, version));
    return store;
}

void expect_refusal(starling_keep store, long long version) {
    char memory[8];
    size_t bytes = sizeof memory;
    EXPECT_INT(starling_keep_fetch(store, "a", (rank + 1) % size, memory, &bytes, &version), MPI_ERR_ARG);
    const char* part = "the processes have different versions of block \"a\"";
    CHECK(strstr(starling_keep_message(), part), "the message is: %s", starling_keep_message());
}

/// Checks that the fetches of other versions are not affected.
void expect_success(starling_keep store, long long version) {
    char memory[8];
    size_t bytes = sizeof memory;
    OK(starling_keep_fetch(store, "a", (rank + 1) % size, memory, &bytes, &version));
    CHECK(!strcmp(memory, "abcdefg"), "the block is %.8s", memory);
}

void test_missing_version() {
    starling_keep store = make_store();
    if (rank == 0) store->names["a"].pop_back();
    expect_refusal(store, 6);
    expect_refusal(store, STARLING_KEEP_LATEST);
    expect_success(store, 5);
    OK(starling_keep_free(&store));
}

void test_other_keepers() {
    starling_keep store = make_store();
    if (rank == size - 1) std::swap(store->names["a"][0].keepers[0][0], store->names["a"][0].keepers[0][1]);
    expect_refusal(store, 5);
    expect_success(store, 6);
    OK(starling_keep_free(&store));
}

}  // namespace

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    test_missing_version();
    test_other_keepers();
    OK(MPI_Finalize());
    return 0;
}
