// The door between liboshmem, which has OpenSHMEM's entry points, and libmpi_abi, which has the runtime that MPI and OpenSHMEM
// share in a process. C names, so that one library can call the other; no other room includes this but oshmem.
//
// Handles are those of shmem.h. `name`: the function that the program has called, for errors and `starling why`. What is wrong with
// an argument ends the job with a sentence, as OpenSHMEM's functions have no errors to return; where they have, it is 0 or another number.
// Functions may be called by any thread as the thread level allows.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace starling::shmem {

/// What elements are, in updates and reductions.
enum class Element : uint8_t {
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float32,
    float64,
    extended,   ///< long double
    complex64,  ///< of two floats
    complex128,
};

enum class Operator : uint8_t { sum, prod, min, max, band, bor, bxor, replace, look };

/// The function that a program has called, and where it has: behind the call instruction.
struct Caller {
    const char* name;
    const void* site;
};

/// What entry points need to reach heaps in mappings without a call into the runtime.
struct Near {
    std::byte* base = nullptr;        ///< of the own heap
    std::atomic<uint64_t> bytes = 0;  ///< of it that accesses may go to; 0: none goes without the runtime
    std::byte** heaps = nullptr;      ///< where each PE's heap is mapped, null: nowhere (yet); written by the runtime only
    const std::atomic<uint32_t>** watching = nullptr;  ///< of each neighbour: not 0 while it waits for its memory to change
    uint32_t pes = 0;
    bool forks = false;                ///< what is called around a fork is
    bool checks = false;               ///< STARLING_CHECK: every address is shown to the runtime
    std::atomic<int32_t> stored = -1;  ///< the PE that was stored to last, since all such PEs were woken; -1: none
    std::atomic<uint32_t> open = 0;    ///< accesses of the default context that are under way
    std::atomic<uint32_t> picks = 0;   ///< of one among several variables, likewise
    std::atomic<uint32_t> looks = 0;   ///< at memory in mappings so far, some lost between threads
};

/// What begins each context that is not the default one: which PEs its numbers mean.
struct ContextHead {
    uint32_t size = 0;  ///< 0: ask the runtime
    int32_t first = 0, stride = 1;
};

/// Handles that are no addresses.
inline constexpr uintptr_t kDefaultContext = 0x10, kWorldTeam = 0x20, kSharedTeam = 0x30;

#pragma GCC visibility push(default)
extern "C" {

extern Near starling_shmem_near;

// Setup. init: what was provided; 0 or another number.
int starling_shmem_init(const char* name, int requested, int* provided);
void starling_shmem_finalize(const char* name);
[[noreturn]] void starling_shmem_global_exit(int status);
/// 0: not yet; 1: between init and finalize; 2: finalized.
int starling_shmem_phase();
int starling_shmem_thread_level();
int starling_shmem_my_pe(const char* name);
int starling_shmem_n_pes(const char* name);
/// Null: its memory can't be reached by the processor.
void* starling_shmem_ptr(const char* name, void* team, const void* address, int pe);
int starling_shmem_accessible(const char* name, const void* address, int pe);
/// Ends the job with the sentence "what: why".
[[noreturn]] void starling_shmem_complain(const char* name, const char* why);
/// Around each fork, next to it: the child's variables are its own.
void starling_shmem_before_fork();
void starling_shmem_after_fork(bool child);

// Memory; collective over all PEs.
void* starling_shmem_allocate(const char* name, size_t alignment, size_t bytes, bool clear);
void* starling_shmem_reallocate(const char* name, void* memory, size_t bytes);
void starling_shmem_free(const char* name, void* memory);

// Accesses. `nbi`: buffers are the program's again at the next quiet; else on return.
void starling_shmem_put(const char* name, void* context, void* dest, const void* source, size_t bytes, int pe, bool nbi);
void starling_shmem_get(const char* name, void* context, void* dest, const void* source, size_t bytes, int pe, bool nbi);
/// Blocks of `block` bytes whose beginnings lie so many bytes apart.
struct starling_shmem_strides {
    ptrdiff_t dest, source;
    size_t block, blocks;
};
void starling_shmem_put_strided(const char* name, void* context, void* dest, const void* source,
                                const starling_shmem_strides* strides, int pe);
void starling_shmem_get_strided(const char* name, void* context, void* dest, const void* source,
                                const starling_shmem_strides* strides, int pe);
/// `old` null: not asked for. `operand` null for Operator::look.
void starling_shmem_update(const char* name, void* context, Element element, Operator op, void* dest, const void* operand,
                           void* old, int pe, bool nbi);
void starling_shmem_compare_swap(const char* name, void* context, Element element, void* dest, const void* cond,
                                 const void* value, void* old, int pe, bool nbi);
/// The signal follows the data: by Operator::replace or Operator::sum.
void starling_shmem_put_signal(const char* name, void* context, void* dest, const void* source, size_t bytes, uint64_t* signal,
                               uint64_t value, Operator op, int pe, bool nbi);
void starling_shmem_quiet(const char* name, void* context);
void starling_shmem_fence(const char* name, void* context);
/// There was a store into that PE's mapped heap, which it may wait for: wake it now, or by the next quiet.
void starling_shmem_wake(int pe);
void starling_shmem_stored(int pe);

// Waiting. `ready` is asked often, and must not call the library.
void starling_shmem_wait(const char* name, bool (*ready)(void*), void* argument);
/// Whether what is waited for or tested lies in allocated symmetric memory; ends the job if not.
void starling_shmem_check(const char* name, const char* what, const void* address, size_t bytes);
/// Moves what can be moved: for loops that test.
void starling_shmem_poll();

// Teams and contexts.
/// {num_contexts, mask} of a configuration.
int starling_shmem_team_split(const char* name, void* parent, int start, int stride, int size, int contexts, void** made);
int starling_shmem_team_split_2d(const char* name, void* parent, int xrange, int x_contexts, void** x, int y_contexts,
                                 void** y);
void starling_shmem_team_destroy(const char* name, void* team);
int starling_shmem_team_my_pe(const char* name, void* team);
int starling_shmem_team_n_pes(const char* name, void* team);
int starling_shmem_team_contexts(const char* name, void* team);
int starling_shmem_team_translate(const char* name, void* from, int pe, void* to);
int starling_shmem_context_create(const char* name, void* team, long options, void** made);
void starling_shmem_context_destroy(const char* name, void* context);
/// Null for an invalid context.
void* starling_shmem_context_team(const char* name, void* context);
/// MPI's communicators as teams and back: MPI_Comm by value. Collective over the members.
int starling_shmem_team_from_comm(const char* name, void* comm, void** made);
int starling_shmem_comm_from_team(const char* name, void* team, void** made);
/// The team of an active set, which lives as long as OpenSHMEM.
void* starling_shmem_active_set(const char* name, int start, int log_stride, int size);

// Collectives over a team. 0, or another number.
int starling_shmem_sync(Caller caller, void* team, bool quiet);
int starling_shmem_broadcast(Caller caller, void* team, void* dest, const void* source, size_t bytes, int root, bool to_root);
int starling_shmem_collect(Caller caller, void* team, void* dest, const void* source, size_t bytes);
int starling_shmem_fcollect(Caller caller, void* team, void* dest, const void* source, size_t bytes);
int starling_shmem_alltoall(Caller caller, void* team, void* dest, const void* source, size_t bytes);
/// Strides in elements of `size` bytes; `count` elements for each PE.
int starling_shmem_alltoalls(Caller caller, void* team, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,
                             size_t count, size_t size);
int starling_shmem_reduce(Caller caller, void* team, void* dest, const void* source, size_t count, Element element,
                          Operator op);
int starling_shmem_scan(Caller caller, void* team, void* dest, const void* source, size_t count, Element element,
                        bool exclusive);

// Locks.
void starling_shmem_set_lock(const char* name, long* lock);
void starling_shmem_clear_lock(const char* name, long* lock);
/// 0: it is ours now.
int starling_shmem_test_lock(const char* name, long* lock);
}  // extern "C"
#pragma GCC visibility pop

}  // namespace starling::shmem
