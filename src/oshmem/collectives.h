// Collectives over teams (OpenSHMEM 1.5 section 9.11) and over active sets, which are deprecated. T is the element type.
#pragma once

#include "oshmem/atomics.h"

namespace starling::oshmem {

using shmem::Caller;

inline void* world_team() { return reinterpret_cast<void*>(shmem::kWorldTeam); }

inline void barrier_all(Caller caller) { starling_shmem_sync(caller, world_team(), true); }
inline void sync_all(Caller caller) { starling_shmem_sync(caller, world_team(), false); }
inline int team_sync(Caller caller, void* team) { return starling_shmem_sync(caller, team, false); }

template <class T>
int alltoall(Caller caller, void* team, void* dest, const void* source, size_t n) {
    return starling_shmem_alltoall(caller, team, dest, source, n * sizeof(T));
}
template <class T>
int alltoalls(Caller caller, void* team, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t n) {
    return starling_shmem_alltoalls(caller, team, dest, source, dst, sst, n, sizeof(T));
}
template <class T>
int broadcast(Caller caller, void* team, void* dest, const void* source, size_t n, int root) {
    return starling_shmem_broadcast(caller, team, dest, source, n * sizeof(T), root, true);
}
template <class T>
int collect(Caller caller, void* team, void* dest, const void* source, size_t n) {
    return starling_shmem_collect(caller, team, dest, source, n * sizeof(T));
}
template <class T>
int fcollect(Caller caller, void* team, void* dest, const void* source, size_t n) {
    return starling_shmem_fcollect(caller, team, dest, source, n * sizeof(T));
}

template <class T>
int reduce(Caller caller, void* team, void* dest, const void* source, size_t n, Operator op) {
    return starling_shmem_reduce(caller, team, dest, source, n, element_of<T>(), op);
}
template <class T>
int and_reduce(Caller caller, void* team, void* dest, const void* source, size_t n) {
    return reduce<T>(caller, team, dest, source, n, Operator::band);
}
template <class T>
int or_reduce(Caller caller, void* team, void* dest, const void* source, size_t n) {
    return reduce<T>(caller, team, dest, source, n, Operator::bor);
}
template <class T>
int xor_reduce(Caller caller, void* team, void* dest, const void* source, size_t n) {
    return reduce<T>(caller, team, dest, source, n, Operator::bxor);
}
template <class T>
int min_reduce(Caller caller, void* team, void* dest, const void* source, size_t n) {
    return reduce<T>(caller, team, dest, source, n, Operator::min);
}
template <class T>
int max_reduce(Caller caller, void* team, void* dest, const void* source, size_t n) {
    return reduce<T>(caller, team, dest, source, n, Operator::max);
}
template <class T>
int sum_reduce(Caller caller, void* team, void* dest, const void* source, size_t n) {
    return reduce<T>(caller, team, dest, source, n, Operator::sum);
}
template <class T>
int prod_reduce(Caller caller, void* team, void* dest, const void* source, size_t n) {
    return reduce<T>(caller, team, dest, source, n, Operator::prod);
}
template <class T>
int sum_inscan(Caller caller, void* team, void* dest, const void* source, size_t n) {
    return starling_shmem_scan(caller, team, dest, source, n, element_of<T>(), false);
}
template <class T>
int sum_exscan(Caller caller, void* team, void* dest, const void* source, size_t n) {
    return starling_shmem_scan(caller, team, dest, source, n, element_of<T>(), true);
}

// Collectives over active sets. These functions do not use the work arrays that programs pass.
inline void barrier(Caller caller, int start, int log_stride, int size, long*) {
    starling_shmem_sync(caller, starling_shmem_active_set(caller.name, start, log_stride, size), true);
}
inline void sync(Caller caller, int start, int log_stride, int size, long*) {
    starling_shmem_sync(caller, starling_shmem_active_set(caller.name, start, log_stride, size), false);
}

/// Broadcasts over an active set; the root's `dest` is not changed.
template <class T>
void broadcast_active(Caller caller, void* dest, const void* source, size_t n, int root, int start, int log_stride, int size,
                      long*) {
    starling_shmem_broadcast(caller, starling_shmem_active_set(caller.name, start, log_stride, size), dest, source,
                             n * sizeof(T), root, false);
}
template <class T>
void collect_active(Caller caller, void* dest, const void* source, size_t n, int start, int log_stride, int size, long*) {
    collect<T>(caller, starling_shmem_active_set(caller.name, start, log_stride, size), dest, source, n);
}
template <class T>
void fcollect_active(Caller caller, void* dest, const void* source, size_t n, int start, int log_stride, int size, long*) {
    fcollect<T>(caller, starling_shmem_active_set(caller.name, start, log_stride, size), dest, source, n);
}
template <class T>
void alltoall_active(Caller caller, void* dest, const void* source, size_t n, int start, int log_stride, int size, long*) {
    alltoall<T>(caller, starling_shmem_active_set(caller.name, start, log_stride, size), dest, source, n);
}
template <class T>
void alltoalls_active(Caller caller, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int start,
                      int log_stride, int size, long*) {
    alltoalls<T>(caller, starling_shmem_active_set(caller.name, start, log_stride, size), dest, source, dst, sst, n);
}

template <class T>
void to_all(Caller caller, void* dest, const void* source, int n, int start, int log_stride, int size, Operator op) {
    reduce<T>(caller, starling_shmem_active_set(caller.name, start, log_stride, size), dest, source, static_cast<size_t>(n),
              op);
}
template <class T>
void and_to_all(Caller caller, void* dest, const void* source, int n, int start, int log_stride, int size, void*, long*) {
    to_all<T>(caller, dest, source, n, start, log_stride, size, Operator::band);
}
template <class T>
void or_to_all(Caller caller, void* dest, const void* source, int n, int start, int log_stride, int size, void*, long*) {
    to_all<T>(caller, dest, source, n, start, log_stride, size, Operator::bor);
}
template <class T>
void xor_to_all(Caller caller, void* dest, const void* source, int n, int start, int log_stride, int size, void*, long*) {
    to_all<T>(caller, dest, source, n, start, log_stride, size, Operator::bxor);
}
template <class T>
void min_to_all(Caller caller, void* dest, const void* source, int n, int start, int log_stride, int size, void*, long*) {
    to_all<T>(caller, dest, source, n, start, log_stride, size, Operator::min);
}
template <class T>
void max_to_all(Caller caller, void* dest, const void* source, int n, int start, int log_stride, int size, void*, long*) {
    to_all<T>(caller, dest, source, n, start, log_stride, size, Operator::max);
}
template <class T>
void sum_to_all(Caller caller, void* dest, const void* source, int n, int start, int log_stride, int size, void*, long*) {
    to_all<T>(caller, dest, source, n, start, log_stride, size, Operator::sum);
}
template <class T>
void prod_to_all(Caller caller, void* dest, const void* source, int n, int start, int log_stride, int size, void*, long*) {
    to_all<T>(caller, dest, source, n, start, log_stride, size, Operator::prod);
}

}  // namespace starling::oshmem
