// Shared by all MPI test programs: checks that report the rank and the line of the source, and a random generator whose seed is printed on
// failure. Plain C that uses only MPI itself, so that C and C++ programs can include it.
#pragma once

#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MPI_AT_LEAST(major, minor) (MPI_VERSION > (major) || (MPI_VERSION == (major) && MPI_SUBVERSION >= (minor)))

static uint64_t test_seed = 1;

/// Prints one line and ends the job. May be called before MPI_Init and after MPI_Finalize.
__attribute__((noreturn, format(printf, 4, 5), unused)) static void fail_at(const char* file, int line, const char* what,
                                                                            const char* format, ...) {
    int initialized = 0, finalized = 0, rank = -1, size = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (initialized && !finalized) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
    }
    char text[800];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char* slash = strrchr(file, '/');
    fprintf(stderr, "FAIL %s:%d rank %d of %d seed %llu: %s: %s\n", slash ? slash + 1 : file, line, rank, size,
            (unsigned long long)test_seed, what, text);
    fflush(stderr);
    if (initialized && !finalized) MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/// CHECK(condition, "format", ...): the message gives the expected and the actual value.
#define CHECK(condition, ...)                                                       \
    do {                                                                            \
        if (!(condition)) fail_at(__FILE__, __LINE__, #condition, " " __VA_ARGS__); \
    } while (0)

/// EXPECT_INT(value, wanted): both integers must be equal.
#define EXPECT_INT(value, wanted)                                                                                           \
    do {                                                                                                                    \
        long long value_ = (long long)(value), wanted_ = (long long)(wanted);                                               \
        if (value_ != wanted_) fail_at(__FILE__, __LINE__, #value " == " #wanted, "is %lld, wanted %lld", value_, wanted_); \
    } while (0)

/// OK(MPI_Call(...)): the call must return MPI_SUCCESS.
#define OK(call)                                               \
    do {                                                       \
        int code_ = (call);                                    \
        if (code_ != MPI_SUCCESS) {                            \
            char string_[MPI_MAX_ERROR_STRING] = "";           \
            int length_ = 0;                                   \
            MPI_Error_string(code_, string_, &length_);        \
            fail_at(__FILE__, __LINE__, #call, "%s", string_); \
        }                                                      \
    } while (0)

/// EXPECT_ERROR(MPI_Call(...), MPI_ERR_X): the call must return an error of that class.
#define EXPECT_ERROR(call, wanted)                                                                            \
    do {                                                                                                      \
        int code_ = (call), class_ = MPI_SUCCESS;                                                             \
        if (code_ != MPI_SUCCESS) MPI_Error_class(code_, &class_);                                            \
        if (class_ != (wanted))                                                                               \
            fail_at(__FILE__, __LINE__, #call, "error class is %d, wanted " #wanted " (%d)", class_, wanted); \
    } while (0)

__attribute__((unused)) static int class_of(int code) {
    int found = MPI_SUCCESS;
    OK(MPI_Error_class(code, &found));
    return found;
}

__attribute__((unused)) static uint64_t next_random(uint64_t* state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/// Returns a random number from 0 to bound - 1.
__attribute__((unused)) static int random_below(uint64_t* state, int bound) {
    return (int)(next_random(state) % (uint64_t)bound);
}

/// Returns this run's seed: TEST_SEED from the environment, or `fallback`.
__attribute__((unused)) static uint64_t start_seed(uint64_t fallback) {
    const char* text = getenv("TEST_SEED");
    test_seed = text ? strtoull(text, NULL, 0) : fallback;
    return test_seed;
}

/// Fills a buffer with bytes that depend on a key and on the position.
__attribute__((unused)) static void fill_bytes(void* buffer, size_t bytes, uint64_t key) {
    unsigned char* p = (unsigned char*)buffer;
    for (size_t i = 0; i < bytes; i++) p[i] = (unsigned char)(i * 131u + (i >> 8) * 17u + key * 29u + 7u);
}

__attribute__((unused)) static long first_wrong_byte(const void* buffer, size_t bytes, uint64_t key) {
    const unsigned char* p = (const unsigned char*)buffer;
    for (size_t i = 0; i < bytes; i++)
        if (p[i] != (unsigned char)(i * 131u + (i >> 8) * 17u + key * 29u + 7u)) return (long)i;
    return -1;
}

/// Returns whether all processes of MPI_COMM_WORLD are on this host, as shared windows require. Collective.
__attribute__((unused)) static int on_one_host(void) {
    MPI_Comm host;
    int size, here;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    OK(MPI_Comm_size(host, &here));
    OK(MPI_Comm_free(&host));
    return here == size;
}
