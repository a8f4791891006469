// Shared by all OpenSHMEM test programs: checks that report the PE and the line of the source. Uses only OpenSHMEM itself.
#pragma once

#include <shmem.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noreturn, format(printf, 4, 5), unused)) static void fail_at(const char* file, int line, const char* what,
                                                                            const char* format, ...) {
    char text[800];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char* slash = strrchr(file, '/');
    fprintf(stderr, "FAIL %s:%d PE %d of %d: %s: %s\n", slash ? slash + 1 : file, line, shmem_my_pe(), shmem_n_pes(), what,
            text);
    fflush(stderr);
    shmem_global_exit(1);
    abort();
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

__attribute__((unused)) static uint64_t next_random(uint64_t* state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
