#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

void bench_require(int condition, const char* message) {
    if (condition) return;
    fprintf(stderr, "benchmark: %s\n", message);
    MPI_Abort(MPI_COMM_WORLD, 3);
    exit(3);
}

void* bench_buffer(size_t bytes) {
    void* buffer = NULL;
    bench_require(posix_memalign(&buffer, 4096, bytes ? bytes : 1) == 0, "out of memory");
    memset(buffer, 1, bytes ? bytes : 1);
    return buffer;
}

void* bench_message_buffer(const Options* options) {
    if (!options->exchanged) return bench_buffer(options->max_bytes);
    void* buffer;
    MPI_Alloc_mem((MPI_Aint)(options->max_bytes ? options->max_bytes : 1), MPI_INFO_NULL, &buffer);
    memset(buffer, 1, options->max_bytes ? options->max_bytes : 1);
    return buffer;
}

void bench_free_message_buffer(const Options* options, void* buffer) {
    if (options->exchanged)
        MPI_Free_mem(buffer);
    else
        free(buffer);
}

static unsigned char pattern(size_t position, unsigned seed) {
    return (unsigned char)((position * 2654435761u >> 7) + position + seed * 37u);
}

void bench_fill(void* buffer, size_t bytes, unsigned seed) {
    unsigned char* p = buffer;
    for (size_t i = 0; i < bytes; ++i) p[i] = pattern(i, seed);
}

void bench_verify(const void* buffer, size_t bytes, unsigned seed, const char* what) {
    const unsigned char* p = buffer;
    for (size_t i = 0; i < bytes; ++i) {
        if (p[i] == pattern(i, seed)) continue;
        fprintf(stderr, "benchmark: wrong data in %s: byte %zu of %zu is %u instead of %u\n", what, i, bytes, p[i],
                pattern(i, seed));
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
}
