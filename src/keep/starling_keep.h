/* starling_keep.h - a store in which the processes of a communicator keep copies of named blocks of memory, for C and C++.
 *
 * The store keeps each block twice: in its owner's memory, and in that of a partner, which is on another host if the communicator has several
 * hosts. After a failure the survivors, and processes that substitute the failed ones, fetch the blocks and continue where the program was.
 * A block is lost only if its owner and its partner fail before the program has called starling_keep_move after the first failure.
 *
 * The store is not a checkpoint of a process: a program saves what it needs to continue, at a place that it chooses. It is not made for
 * data that must survive the end of the job; write a file for that.
 *
 * Link with -lstarling_keep. docs/keep.md has an example.
 *
 * Terms. A block has a name, a version, and an owner: the rank, at the time of the save, of the process that saved it. A version counts when
 * all processes have saved their blocks of it. The owners' ranks stay the names of the blocks when ranks change.
 *
 * Memory. For each name a process keeps up to two versions of its own block, and two of the block of each process whose partner it is. That is
 * one process, if no host has more than half of the processes. After a failure it also keeps the blocks that it takes over from a failed owner
 * or partner, until two later versions have been saved. The store makes no other copies of blocks.
 *
 * Errors. All functions return MPI_SUCCESS or an error class of MPI or of mpi-ext.h, and call no error handler. starling_keep_message()
 * returns the sentence. A collective function returns the same class on all living processes, if nothing else is said. If the store's
 * communicator is revoked meanwhile, however, some may return MPIX_ERR_REVOKED; what then counts is known after starling_keep_move.
 * After MPIX_ERR_PROC_FAILED or MPIX_ERR_REVOKED, every save and fetch fails with one of the two until the store has been moved.
 *
 * Failures. If a process does not call starling_keep_save or starling_keep_fetch because it has noticed a failure, it must call MPIX_Comm_revoke
 * with the store's communicator. The function then returns MPIX_ERR_REVOKED in the other processes. The communicator needs an error
 * handler that returns, such as MPI_ERRORS_RETURN. The other collective functions wait for all living processes, like MPIX_Comm_shrink, and a
 * revocation does not end them.
 *
 * Threads. One thread at a time may use a store, and only one store of a communicator. Different stores of different communicators may be used
 * at the same time if MPI's thread level is MPI_THREAD_MULTIPLE.
 *
 * Source. All of this is an extension of Starling, made of public functions of MPI and of user-level failure mitigation (ULFM). */
#ifndef STARLING_KEEP_H
#define STARLING_KEEP_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A store. The program owns it from starling_keep_create until starling_keep_free. */
typedef struct starling_keep_store* starling_keep;

/* The longest name of a block, in bytes without the final zero. */
#define STARLING_KEEP_MAX_NAME 63
/* Versions are numbers from 0 on. These two have a meaning. */
#define STARLING_KEEP_LATEST (-1) /* the newest version that counts */
#define STARLING_KEEP_NONE (-2)   /* no version counts */
/* A bound that any amount of memory fits. */
#define STARLING_KEEP_UNBOUNDED SIZE_MAX
/* The class of a fetch of blocks of which no copy is left. */
#define STARLING_KEEP_LOST MPI_ERR_OTHER

/* Creates an empty store for the processes of the intra-communicator `comm`. Collective over `comm`. Processes that have moved a store to `comm`
 * with starling_keep_move match this call: so substitutes of failed processes get a store with all blocks of the others.
 *
 * `bound` is the most memory, in bytes, that the store may use for blocks in this process; it may differ between processes. `comm` remains the
 * caller's, and must exist until the store is moved or freed, or the call fails. The store posts a receive from the process itself on `comm`
 * with the tag MPI_TAG_UB during calls, to notice that `comm` is revoked.
 *
 * Errors: MPI_ERR_COMM (no intra-communicator), MPI_ERR_ARG, MPIX_ERR_PROC_FAILED, MPIX_ERR_REVOKED: *store is then NULL. MPI_ERR_NO_MEM: as
 * with starling_keep_move; *store is NULL if the store has not moved. */
int starling_keep_create(MPI_Comm comm, size_t bound, starling_keep* store);

/* Keeps the `bytes` bytes at `address` as this process's block of `version` of `name`. Collective: all processes give the same name and version,
 * and each its own address and length. When the call returns, the memory at `address` may be changed.
 *
 * MPI_SUCCESS means that the version counts: all processes have their block and a copy at a partner. On other errors than MPIX_ERR_REVOKED it
 * counts on no process. Each save of a name keeps the latest version before it and drops older ones. Versions need not be consecutive. A save
 * of a version that is not newer than the latest replaces the versions from its number on: the program has gone back. If processes fail
 * during the call, it may still succeed.
 *
 * A save that fails because of its arguments or of a bound drops nothing. After other errors the latest version that counted before still
 * does, unless the program has gone back: the save may have dropped the latest version then, to reuse its memory, and the one before it counts.
 *
 * Errors: MPI_ERR_ARG (a name or version that is not valid, or not the same everywhere), MPI_ERR_NO_MEM (the message says which process lacks how
 * much memory), MPIX_ERR_PROC_FAILED, MPIX_ERR_REVOKED. */
int starling_keep_save(starling_keep store, const char* name, const void* address, size_t bytes, long long version);

/* Copies the block of `owner` to `address`. Collective: all processes give the same name and version, and each an owner of its choice, or
 * MPI_PROC_NULL if it needs no block. Several processes may fetch the same block.
 *
 * `*bytes` is the size of the memory at `address`, and then the length of the block. With `address` NULL only the length is returned. `*version`
 * is the wanted version or STARLING_KEEP_LATEST, and then the version of the block. On errors the memory at `address` is undefined.
 *
 * Errors: STARLING_KEEP_LOST (no copy is left of a block that any process wants: the message says whose blocks of the version are lost),
 * MPI_ERR_ARG (no such version or owner; calls that do not match), MPI_ERR_TRUNCATE (only in processes with too little memory for
 * their block; *bytes is the block's length), MPIX_ERR_PROC_FAILED, MPIX_ERR_REVOKED. */
int starling_keep_fetch(starling_keep store, const char* name, int owner, void* address, size_t* bytes, long long* version);

/* Returns the latest version of `name` that counts, or STARLING_KEEP_NONE, and the number of its owners: the ranks 0 to *owners - 1. `owners` may
 * be NULL. With `name` NULL: the latest version that counts of all names. Local. The result is the same on all processes, except in the
 * time from a call that has returned MPIX_ERR_PROC_FAILED or MPIX_ERR_REVOKED to the next starling_keep_move.
 *
 * Errors: MPI_ERR_ARG. */
int starling_keep_latest(starling_keep store, const char* name, long long* version, int* owners);

/* Moves the store to the intra-communicator `comm`, and makes again the copies that have been lost. Collective over `comm`: its processes call it
 * that have the store, and the others call starling_keep_create. A process of the old communicator that lives, but is not in `comm`,
 * calls starling_keep_free instead. The old communicator need not exist any more. The call includes an MPIX_Comm_shrink of `comm`; if that
 * shows that a process of `comm` has failed, the move fails on all processes.
 *
 * If `comm` has as many processes as the old one, each rank gets a copy of the blocks whose owner had that rank: give substitutes the ranks
 * of those that failed. In other communicators, as from MPIX_Comm_shrink, survivors keep their blocks, and the processes with the second
 * copies take over those of the failed. Blocks without a copy are lost; starling_keep_fetch reports them.
 *
 * If `comm` has been revoked, the store moves all the same, because a shrink of a revoked communicator works. Every save and fetch then returns
 * MPIX_ERR_REVOKED until the store has been moved to another communicator.
 *
 * Errors: MPI_ERR_COMM; MPIX_ERR_PROC_FAILED and MPIX_ERR_REVOKED (a process of `comm` has failed before or during the move, and the store
 * has not moved; shrink again and move it to the result); MPI_ERR_NO_MEM (the store has moved if its message says so, but some blocks have one
 * copy because the bound of a process forbids more; else a process has no memory for the move). */
int starling_keep_move(starling_keep store, MPI_Comm comm);

/* Frees the store and its blocks, and sets *store to NULL. Collective, and succeeds also after failures. A NULL store is ignored.
 *
 * Errors: MPI_ERR_ARG (no pointer to a store). */
int starling_keep_free(starling_keep* store);

/* Returns a sentence about the last error of a function of this header in this thread. The library owns the text, which is valid until the
 * thread's next call of one of them. Never NULL. */
const char* starling_keep_message(void);

#ifdef __cplusplus
}
#endif

#endif
