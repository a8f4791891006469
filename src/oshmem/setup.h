// Setup, memory, teams, contexts, locks and the remaining functions (OpenSHMEM 1.5 sections 9.1 to 9.4, 9.12, 9.13).
#pragma once

#include <cstdlib>
#include <cstring>

#include "oshmem/mapped_heap.h"

namespace starling::oshmem {

inline int init_thread(const char* name, int requested, int* provided) {
    return starling_shmem_init(name, requested, provided);
}
inline void init(const char* name) { starling_shmem_init(name, 0, nullptr); }
inline void query_thread(const char* name, int* provided) {
    if (starling_shmem_phase() != 1)
        starling_shmem_complain(
            name,
            "OpenSHMEM is not initialized, or is finalized already; call this function between shmem_init and shmem_finalize");
    *provided = starling_shmem_thread_level();
}
inline void finalize(const char* name) { starling_shmem_finalize(name); }
inline void query_initialized(const char*, int* flag) { *flag = starling_shmem_phase() != 0; }
inline void query_finalized(const char*, int* flag) { *flag = starling_shmem_phase() == 2; }
/// Initializes OpenSHMEM and registers its finalization at exit, because programs that use start_pes() do not call it.
inline void start_pes(const char* name, int) {
    if (starling_shmem_phase() == 1) return;
    starling_shmem_init(name, 0, nullptr);
    std::atexit([] {
        if (starling_shmem_phase() == 1) starling_shmem_finalize("exit");
    });
}
inline int my_pe(const char* name) { return starling_shmem_my_pe(name); }
inline int n_pes(const char* name) { return starling_shmem_n_pes(name); }
[[noreturn]] inline void global_exit(const char*, int status) { starling_shmem_global_exit(status); }
inline int pe_accessible(const char* name, int pe) { return starling_shmem_accessible(name, nullptr, pe); }
inline int addr_accessible(const char* name, const void* address, int pe) {
    return address ? starling_shmem_accessible(name, address, pe) : 0;
}
inline void* ptr(const char* name, const void* address, int pe) {
    return starling_shmem_ptr(name, reinterpret_cast<void*>(shmem::kWorldTeam), address, pe);
}
inline void* team_ptr(const char* name, void* team, const void* address, int pe) {
    return starling_shmem_ptr(name, team, address, pe);
}
inline void info_get_version(const char*, int* major, int* minor) {
    *major = 1;
    *minor = 5;
}
inline void info_get_name(const char*, char* text) { std::strcpy(text, "Starling"); }
inline void pcontrol(const char*, int) {}

inline void* malloc(const char* name, size_t bytes) { return starling_shmem_allocate(name, 0, bytes, false); }
inline void* malloc_with_hints(const char* name, size_t bytes, long) { return starling_shmem_allocate(name, 0, bytes, false); }
inline void* calloc(const char* name, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) bytes = SIZE_MAX;
    return starling_shmem_allocate(name, 0, bytes, true);
}
inline void* align(const char* name, size_t alignment, size_t bytes) {
    if (alignment == 0) return nullptr;  // An alignment of 0 is not a power of two, so it is invalid.
    return starling_shmem_allocate(name, alignment, bytes, false);
}
inline void* realloc(const char* name, void* memory, size_t bytes) { return starling_shmem_reallocate(name, memory, bytes); }
inline void free(const char* name, void* memory) { starling_shmem_free(name, memory); }

inline int team_my_pe(const char* name, void* team) { return starling_shmem_team_my_pe(name, team); }
inline int team_n_pes(const char* name, void* team) { return starling_shmem_team_n_pes(name, team); }
inline int team_translate_pe(const char* name, void* from, int pe, void* to) {
    return starling_shmem_team_translate(name, from, pe, to);
}
template <class Config>
int team_get_config(const char* name, void* team, long mask, Config* config) {
    const int contexts = starling_shmem_team_contexts(name, team);
    if (contexts < 0 || (mask & ~1l) != 0) return -1;
    if (mask & 1) config->num_contexts = contexts;
    return 0;
}
/// Returns the number of contexts that a configuration requests.
template <class Config>
int wanted_contexts(const Config* config, long mask) {
    return config && (mask & 1) ? config->num_contexts : 0;
}
template <class Config, class Team>
int team_split_strided(const char* name, void* parent, int start, int stride, int size, const Config* config, long mask,
                       Team* made) {
    return starling_shmem_team_split(name, parent, start, stride, size, wanted_contexts(config, mask),
                                     reinterpret_cast<void**>(made));
}
template <class Config, class Team>
int team_split_2d(const char* name, void* parent, int xrange, const Config* x_config, long x_mask, Team* x,
                  const Config* y_config, long y_mask, Team* y) {
    return starling_shmem_team_split_2d(name, parent, xrange, wanted_contexts(x_config, x_mask), reinterpret_cast<void**>(x),
                                        wanted_contexts(y_config, y_mask), reinterpret_cast<void**>(y));
}
inline void team_destroy(const char* name, void* team) { starling_shmem_team_destroy(name, team); }

template <class Context>
int team_create_ctx(const char* name, void* team, long options, Context* made) {
    return starling_shmem_context_create(name, team, options, reinterpret_cast<void**>(made));
}
template <class Context>
int ctx_create(const char* name, long options, Context* made) {
    return team_create_ctx(name, reinterpret_cast<void*>(shmem::kWorldTeam), options, made);
}
inline void ctx_destroy(const char* name, void* context) { starling_shmem_context_destroy(name, context); }
template <class Team>
int ctx_get_team(const char* name, void* context, Team* team) {
    *team = static_cast<Team>(starling_shmem_context_team(name, context));
    return *team ? 0 : -1;
}
/// These hints announce that a program will start many accesses. They do nothing, because accesses are never delayed or batched.
template <class Config>
void ctx_session_start(const char*, void*, long, const Config*, long) {}
inline void ctx_session_stop(const char*, void*) {}

inline void set_lock(const char* name, long* lock) { starling_shmem_set_lock(name, lock); }
inline void clear_lock(const char* name, long* lock) { starling_shmem_clear_lock(name, lock); }
inline int test_lock(const char* name, long* lock) { return starling_shmem_test_lock(name, lock); }

// The cache functions do nothing, because caches are coherent.
inline void set_cache_inv(const char*) {}
inline void set_cache_line_inv(const char*, void*) {}
inline void clear_cache_inv(const char*) {}
inline void clear_cache_line_inv(const char*, void*) {}
inline void udcflush(const char*) {}
inline void udcflush_line(const char*, void*) {}

}  // namespace starling::oshmem
