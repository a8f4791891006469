// The interface between liboshmem, which has OpenSHMEM's entry points, and libmpi_abi, which has the runtime that MPI and OpenSHMEM share
// in a process. Its names are C names, so that one library can call the other. Only src/oshmem includes this file.
//
// Handles are those of shmem.h. `name` is the function that the program has called, for errors and `starling why`. A wrong argument ends
// the job with an error text, because OpenSHMEM's functions return no errors; those that do return 0 on success. Functions may be called by
// any thread that the thread level allows.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace starling::shmem {

/// The element types of updates and reductions.
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
    extended,   ///< C's long double
    complex64,  ///< complex number of two floats
    complex128,
};

enum class Operator : uint8_t { sum, prod, min, max, band, bor, bxor, replace, look };

/// The function that a program has called, and the return address of the call in the program.
struct Caller {
    const char* name;
    const void* site;
};

/// State that entry points read to access mapped heaps without a call into the runtime.
struct Near {
    std::byte* base = nullptr;        ///< start of this PE's heap
    std::atomic<uint64_t> bytes = 0;  ///< heap bytes open for mapped access; 0: every access calls the runtime
    std::byte** heaps = nullptr;      ///< base of each PE's heap in this process; null: not mapped; written by the runtime only
    const std::atomic<uint32_t>** watching = nullptr;  ///< by PE: not 0 while that neighbor waits for its memory to change
    uint32_t pes = 0;
    bool forks = false;                ///< whether fork handlers are registered
    bool checks = false;               ///< STARLING_CHECK: the runtime checks every address
    std::atomic<int32_t> stored = -1;  ///< PE of the last store since the last wake_stored(); -1: none
    std::atomic<uint32_t> open = 0;    ///< accesses of the default context in progress
    std::atomic<uint32_t> picks = 0;   ///< calls so far that chose one of several variables; approximate with threads
    std::atomic<uint32_t> polls = 0;   ///< reads of mapped memory so far; approximate with threads
};

/// First member of every context except the default one: the PEs that the context's PE numbers denote.
struct ContextHead {
    uint32_t size = 0;  ///< number of PEs; 0: the runtime must translate the PE's number
    int32_t first = 0, stride = 1;
};

/// Values of the predefined handles; they are not addresses.
inline constexpr uintptr_t kDefaultContext = 0x10, kWorldTeam = 0x20, kSharedTeam = 0x30;

#pragma GCC visibility push(default)
extern "C" {

extern Near starling_shmem_near;

// Setup. starling_shmem_init stores the provided thread level and returns 0, or another value on failure.
int starling_shmem_init(const char* name, int requested, int* provided);
void starling_shmem_finalize(const char* name);
[[noreturn]] void starling_shmem_global_exit(int status);
/// Returns 0 before initialization, 1 until finalization, 2 after it.
int starling_shmem_phase();
int starling_shmem_thread_level();
int starling_shmem_my_pe(const char* name);
int starling_shmem_n_pes(const char* name);
/// Returns the address of a PE's copy of `address` in this process; null if that PE's memory is not mapped here.
void* starling_shmem_ptr(const char* name, void* team, const void* address, int pe);
int starling_shmem_accessible(const char* name, const void* address, int pe);
/// Prints "name: why" and ends the job.
[[noreturn]] void starling_shmem_complain(const char* name, const char* why);
/// These two functions must be called immediately before and after each fork: they give the child a copy of the variables.
void starling_shmem_before_fork();
void starling_shmem_after_fork(bool child);

// Functions of the symmetric heap; collective over all PEs.
void* starling_shmem_allocate(const char* name, size_t alignment, size_t bytes, bool clear);
void* starling_shmem_reallocate(const char* name, void* memory, size_t bytes);
void starling_shmem_free(const char* name, void* memory);

// Puts and gets. With `nbi` the program's buffers are in use until the next quiet, otherwise until the function returns.
void starling_shmem_put(const char* name, void* context, void* dest, const void* source, size_t bytes, int pe, bool nbi);
void starling_shmem_get(const char* name, void* context, void* dest, const void* source, size_t bytes, int pe, bool nbi);
/// The layout of a strided access: `blocks` blocks of `block` bytes each. `dest` and `source` are the distances in bytes from the begin of
/// one block to that of the next.
struct starling_shmem_strides {
    ptrdiff_t dest, source;
    size_t block, blocks;
};
void starling_shmem_put_strided(const char* name, void* context, void* dest, const void* source,
                                const starling_shmem_strides* strides, int pe);
void starling_shmem_get_strided(const char* name, void* context, void* dest, const void* source,
                                const starling_shmem_strides* strides, int pe);
/// Applies an operator to one element of a PE. `old` is null if the program does not want the old value. `operand` is null for
/// Operator::look.
void starling_shmem_update(const char* name, void* context, Element element, Operator op, void* dest, const void* operand,
                           void* old, int pe, bool nbi);
void starling_shmem_compare_swap(const char* name, void* context, Element element, void* dest, const void* cond,
                                 const void* value, void* old, int pe, bool nbi);
/// Puts data and then updates the signal, by Operator::replace or Operator::sum.
void starling_shmem_put_signal(const char* name, void* context, void* dest, const void* source, size_t bytes, uint64_t* signal,
                               uint64_t value, Operator op, int pe, bool nbi);
void starling_shmem_quiet(const char* name, void* context);
void starling_shmem_fence(const char* name, void* context);
/// Report a store into a PE's mapped heap, for whose change the PE may be waiting. starling_shmem_wake() wakes the PE now;
/// starling_shmem_stored() leaves that to the next quiet.
void starling_shmem_wake(int pe);
void starling_shmem_stored(int pe);

// Waits until `ready(argument)` is true. `ready` is called often and must not call the library.
void starling_shmem_wait(const char* name, bool (*ready)(void*), void* argument);
/// Ends the job unless a variable that is waited for or tested lies in allocated symmetric memory.
void starling_shmem_check(const char* name, const char* what, const void* address, size_t bytes);
/// Makes progress. A test of a variable calls it, because programs test in loops.
void starling_shmem_poll();

// Functions of teams and contexts.
/// Creates a team of the PEs at a stride in `parent`. `contexts` is num_contexts of the configuration.
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
/// Returns the team on which a context was created; null for an invalid context.
void* starling_shmem_context_team(const char* name, void* context);
/// Convert MPI's communicators to teams, and the reverse; an MPI_Comm is passed by value. Collective over the members.
int starling_shmem_team_from_comm(const char* name, void* comm, void** made);
int starling_shmem_comm_from_team(const char* name, void* team, void** made);
/// Returns the team of an active set; it lives until OpenSHMEM is finalized.
void* starling_shmem_active_set(const char* name, int start, int log_stride, int size);

// Collectives over a team. They return 0, or another value on failure.
int starling_shmem_sync(Caller caller, void* team, bool quiet);
int starling_shmem_broadcast(Caller caller, void* team, void* dest, const void* source, size_t bytes, int root, bool to_root);
int starling_shmem_collect(Caller caller, void* team, void* dest, const void* source, size_t bytes);
int starling_shmem_fcollect(Caller caller, void* team, void* dest, const void* source, size_t bytes);
int starling_shmem_alltoall(Caller caller, void* team, void* dest, const void* source, size_t bytes);
/// All-to-all with strides, which are in elements of `size` bytes; `count` elements go to each PE.
int starling_shmem_alltoalls(Caller caller, void* team, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,
                             size_t count, size_t size);
int starling_shmem_reduce(Caller caller, void* team, void* dest, const void* source, size_t count, Element element,
                          Operator op);
int starling_shmem_scan(Caller caller, void* team, void* dest, const void* source, size_t count, Element element,
                        bool exclusive);

// Locks.
void starling_shmem_set_lock(const char* name, long* lock);
void starling_shmem_clear_lock(const char* name, long* lock);
/// Returns 0 if this PE has acquired the lock.
int starling_shmem_test_lock(const char* name, long* lock);
}  // extern "C"
#pragma GCC visibility pop

}  // namespace starling::shmem
