// Collectives over teams (OpenSHMEM 1.5 section 9.11) and over active sets, which are deprecated. T: the element.
#pragma once

#include "oshmem/atomics.h"

namespace starling::oshmem {

inline void* world_team() { return reinterpret_cast<void*>(shmem::kWorldTeam); }

inline void barrier_all(const char* name) { starling_shmem_sync(name, world_team(), true); }
inline void sync_all(const char* name) { starling_shmem_sync(name, world_team(), false); }
inline int team_sync(const char* name, void* team) { return starling_shmem_sync(name, team, false); }

template <class T>
int alltoall(const char* name, void* team, void* dest, const void* source, size_t n) {
    return starling_shmem_alltoall(name, team, dest, source, n * sizeof(T));
}
template <class T>
int alltoalls(const char* name, void* team, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t n) {
    return starling_shmem_alltoalls(name, team, dest, source, dst, sst, n, sizeof(T));
}
template <class T>
int broadcast(const char* name, void* team, void* dest, const void* source, size_t n, int root) {
    return starling_shmem_broadcast(name, team, dest, source, n * sizeof(T), root, true);
}
template <class T>
int collect(const char* name, void* team, void* dest, const void* source, size_t n) {
    return starling_shmem_collect(name, team, dest, source, n * sizeof(T));
}
template <class T>
int fcollect(const char* name, void* team, void* dest, const void* source, size_t n) {
    return starling_shmem_fcollect(name, team, dest, source, n * sizeof(T));
}

template <class T>
int reduce(const char* name, void* team, void* dest, const void* source, size_t n, Operator op) {
    return starling_shmem_reduce(name, team, dest, source, n, element_of<T>(), op);
}
template <class T>
int and_reduce(const char* name, void* team, void* dest, const void* source, size_t n) {
    return reduce<T>(name, team, dest, source, n, Operator::band);
}
template <class T>
int or_reduce(const char* name, void* team, void* dest, const void* source, size_t n) {
    return reduce<T>(name, team, dest, source, n, Operator::bor);
}
template <class T>
int xor_reduce(const char* name, void* team, void* dest, const void* source, size_t n) {
    return reduce<T>(name, team, dest, source, n, Operator::bxor);
}
template <class T>
int min_reduce(const char* name, void* team, void* dest, const void* source, size_t n) {
    return reduce<T>(name, team, dest, source, n, Operator::min);
}
template <class T>
int max_reduce(const char* name, void* team, void* dest, const void* source, size_t n) {
    return reduce<T>(name, team, dest, source, n, Operator::max);
}
template <class T>
int sum_reduce(const char* name, void* team, void* dest, const void* source, size_t n) {
    return reduce<T>(name, team, dest, source, n, Operator::sum);
}
template <class T>
int prod_reduce(const char* name, void* team, void* dest, const void* source, size_t n) {
    return reduce<T>(name, team, dest, source, n, Operator::prod);
}
template <class T>
int sum_inscan(const char* name, void* team, void* dest, const void* source, size_t n) {
    return starling_shmem_scan(name, team, dest, source, n, element_of<T>(), false);
}
template <class T>
int sum_exscan(const char* name, void* team, void* dest, const void* source, size_t n) {
    return starling_shmem_scan(name, team, dest, source, n, element_of<T>(), true);
}

// Active sets. Work arrays are not needed.
inline void barrier(const char* name, int start, int log_stride, int size, long*) {
    starling_shmem_sync(name, starling_shmem_active_set(name, start, log_stride, size), true);
}
inline void sync(const char* name, int start, int log_stride, int size, long*) {
    starling_shmem_sync(name, starling_shmem_active_set(name, start, log_stride, size), false);
}

/// The root keeps what its target holds.
template <class T>
void broadcast_active(const char* name, void* dest, const void* source, size_t n, int root, int start, int log_stride, int size,
                      long*) {
    starling_shmem_broadcast(name, starling_shmem_active_set(name, start, log_stride, size), dest, source, n * sizeof(T), root,
                             false);
}
template <class T>
void collect_active(const char* name, void* dest, const void* source, size_t n, int start, int log_stride, int size, long*) {
    collect<T>(name, starling_shmem_active_set(name, start, log_stride, size), dest, source, n);
}
template <class T>
void fcollect_active(const char* name, void* dest, const void* source, size_t n, int start, int log_stride, int size, long*) {
    fcollect<T>(name, starling_shmem_active_set(name, start, log_stride, size), dest, source, n);
}
template <class T>
void alltoall_active(const char* name, void* dest, const void* source, size_t n, int start, int log_stride, int size, long*) {
    alltoall<T>(name, starling_shmem_active_set(name, start, log_stride, size), dest, source, n);
}
template <class T>
void alltoalls_active(const char* name, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int start,
                      int log_stride, int size, long*) {
    alltoalls<T>(name, starling_shmem_active_set(name, start, log_stride, size), dest, source, dst, sst, n);
}

template <class T>
void to_all(const char* name, void* dest, const void* source, int n, int start, int log_stride, int size, Operator op) {
    reduce<T>(name, starling_shmem_active_set(name, start, log_stride, size), dest, source, static_cast<size_t>(n), op);
}
template <class T>
void and_to_all(const char* name, void* dest, const void* source, int n, int start, int log_stride, int size, void*, long*) {
    to_all<T>(name, dest, source, n, start, log_stride, size, Operator::band);
}
template <class T>
void or_to_all(const char* name, void* dest, const void* source, int n, int start, int log_stride, int size, void*, long*) {
    to_all<T>(name, dest, source, n, start, log_stride, size, Operator::bor);
}
template <class T>
void xor_to_all(const char* name, void* dest, const void* source, int n, int start, int log_stride, int size, void*, long*) {
    to_all<T>(name, dest, source, n, start, log_stride, size, Operator::bxor);
}
template <class T>
void min_to_all(const char* name, void* dest, const void* source, int n, int start, int log_stride, int size, void*, long*) {
    to_all<T>(name, dest, source, n, start, log_stride, size, Operator::min);
}
template <class T>
void max_to_all(const char* name, void* dest, const void* source, int n, int start, int log_stride, int size, void*, long*) {
    to_all<T>(name, dest, source, n, start, log_stride, size, Operator::max);
}
template <class T>
void sum_to_all(const char* name, void* dest, const void* source, int n, int start, int log_stride, int size, void*, long*) {
    to_all<T>(name, dest, source, n, start, log_stride, size, Operator::sum);
}
template <class T>
void prod_to_all(const char* name, void* dest, const void* source, int n, int start, int log_stride, int size, void*, long*) {
    to_all<T>(name, dest, source, n, start, log_stride, size, Operator::prod);
}

}  // namespace starling::oshmem
