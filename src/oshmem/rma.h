// Puts and gets (OpenSHMEM 1.5 section 9.5) and their ordering (9.10). T is the element type.
#pragma once

#include "oshmem/mapped_heap.h"

namespace starling::oshmem {

template <class T>
void put(const char* name, void* context, void* dest, const void* source, size_t n, int pe) {
    const int to = world_pe(context, pe);
    if (std::byte* there = reach(dest, n * sizeof(T), to)) [[likely]] {
        if (n == 1)
            __builtin_memcpy(there, source, sizeof(T));
        else
            std::memcpy(there, source, n * sizeof(T));
        return note_remote_store(to);
    }
    starling_shmem_put(name, context, dest, source, n * sizeof(T), pe, false);
}

template <class T>
void put_nbi(const char* name, void* context, void* dest, const void* source, size_t n, int pe) {
    const int to = world_pe(context, pe);
    if (std::byte* there = reach(dest, n * sizeof(T), to)) [[likely]] {
        std::memcpy(there, source, n * sizeof(T));
        return note_remote_store(to);
    }
    starling_shmem_put(name, context, dest, source, n * sizeof(T), pe, true);
}

template <class T>
void p(const char* name, void* context, void* dest, T value, int pe) {
    put<T>(name, context, dest, &value, 1, pe);
}

template <class T>
void get(const char* name, void* context, void* dest, const void* source, size_t n, int pe) {
    if (const std::byte* there = reach(context, source, n * sizeof(T), pe)) [[likely]] {
        if (n == 1)
            __builtin_memcpy(dest, there, sizeof(T));
        else
            std::memcpy(dest, there, n * sizeof(T));
        return poll_after_load();
    }
    starling_shmem_get(name, context, dest, source, n * sizeof(T), pe, false);
}

template <class T>
void get_nbi(const char* name, void* context, void* dest, const void* source, size_t n, int pe) {
    if (const std::byte* there = reach(context, source, n * sizeof(T), pe)) [[likely]] {
        std::memcpy(dest, there, n * sizeof(T));
        return poll_after_load();
    }
    starling_shmem_get(name, context, dest, source, n * sizeof(T), pe, true);
}

template <class T>
T g(const char* name, void* context, const void* source, int pe) {
    T value;
    get<T>(name, context, &value, source, 1, pe);
    return value;
}

/// Puts blocks at a stride; strides are in elements.
template <class T>
void ibput(const char* name, void* context, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t block,
           size_t blocks, int pe) {
    constexpr ptrdiff_t size = sizeof(T);
    const starling_shmem_strides strides{dst * size, sst * size, block * sizeof(T), blocks};
    starling_shmem_put_strided(name, context, dest, source, &strides, pe);
}

template <class T>
void ibget(const char* name, void* context, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t block,
           size_t blocks, int pe) {
    constexpr ptrdiff_t size = sizeof(T);
    const starling_shmem_strides strides{dst * size, sst * size, block * sizeof(T), blocks};
    starling_shmem_get_strided(name, context, dest, source, &strides, pe);
}

template <class T>
void iput(const char* name, void* context, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe) {
    ibput<T>(name, context, dest, source, dst, sst, 1, n, pe);
}

template <class T>
void iget(const char* name, void* context, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe) {
    ibget<T>(name, context, dest, source, dst, sst, 1, n, pe);
}

inline void ctx_quiet(const char* name, void* context) { starling_shmem_quiet(name, context); }
inline void ctx_fence(const char* name, void* context) { starling_shmem_fence(name, context); }

/// Completes this PE's accesses of the default context. If none is in progress and no neighbor was stored to, there is nothing to wait for
/// and no PE to wake. The fence is required nevertheless: other PEs must see this PE's stores into its own memory before it reads theirs.
inline void quiet(const char* name) {
    shmem::Near& near = starling_shmem_near;
    if (near.pes != 0 && near.open.load(std::memory_order_relaxed) == 0 && near.stored.load(std::memory_order_relaxed) < 0) {
        std::atomic_thread_fence(std::memory_order_seq_cst);
        return;
    }
    starling_shmem_quiet(name, default_context());
}

inline void fence(const char* name) { starling_shmem_fence(name, default_context()); }

}  // namespace starling::oshmem
