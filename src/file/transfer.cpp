#include "file/transfer.h"

#include <cerrno>

#include "base/error.h"
#include "collective/communicator/creation.h"
#include "file/helper.h"
#include "file/locked_turn.h"
#include "file/system_call.h"
#include "file/transfer_batch.h"
#include "progress/engine.h"

namespace starling::file {

namespace {

const char* doing(bool writes) { return writes ? "write to" : "read"; }

/// The file's range between the first and the last byte of a transfer, which atomic mode locks.
Extent range_of(const FileTransfer& transfer) {
    const auto bytes = static_cast<int64_t>(transfer.bytes());
    const datatype::Datatype& type = *transfer.view->filetype;
    if (type.extent < type.true_extent) {  // the filetype's repetitions interleave: lock all that they span
        const int64_t element = transfer.position / type.size, last = (transfer.position + bytes - 1) / type.size;
        return {transfer.view->displacement + element * type.extent + type.true_lb,
                (last - element) * type.extent + type.true_extent};
    }
    const int64_t first = file_offset(*transfer.view, transfer.position);
    return {first, file_offset(*transfer.view, transfer.position + bytes - 1) + 1 - first};
}

bool is_locked(const File& file, const FileTransfer& transfer) {
    return file.atomic && transfer.bytes() > 0 && transfer.view->filetype->size > 0;
}

/// Locks a range, and lets this process progress between the attempts. Another process holds the lock only for one transfer, and the kernel
/// releases it if that process ends, so the wait ends.
int lock_range(File& file, Extent range, bool writes) {
    int failed = EAGAIN;
    while (failed == EAGAIN) {
        failed = system_call([&] { return file.system->lock(range, writes); });
        if (failed == EAGAIN) progress::test();
    }
    return failed ? fail_of(failed, "lock", file.name) : MPI_SUCCESS;
}

/// Returns the error of a batch, MPI_SUCCESS if it has none; `ends` is set if no further batch follows it.
int result_of(const File& file, const TransferBatch& batch, const Moved& part, int64_t& moved, bool& ends) {
    moved += part.bytes;
    ends = part.system_error || part.bytes < batch.bytes;
    return part.system_error ? fail_of(part.system_error, doing(batch.writes), file.name) : MPI_SUCCESS;
}

/// Returns whether a transfer is between one block of memory and one run of the file, as most are.
bool is_one_run(const FileTransfer& transfer) {
    return transfer.bytes() > 0 && transfer.view->contiguous() &&
           datatype::is_block(*transfer.memory.type, transfer.memory.count);
}

int move_run(File& file, const FileTransfer& transfer, bool writes, int64_t& moved) {
    const rma::LocalBuffer& memory = transfer.memory;
    const iovec piece{datatype::block_address(*memory.type, memory.buffer), transfer.bytes()};
    const int64_t offset = transfer.view->displacement + transfer.position;
    OpenFile& system = *file.system;
    const Moved part = system_call([&] { return writes ? system.write(offset, &piece, 1) : system.read(offset, &piece, 1); });
    moved = part.bytes;
    return part.system_error ? fail_of(part.system_error, doing(writes), file.name) : MPI_SUCCESS;
}

int move_batches(File& file, const FileTransfer& transfer, bool writes, int64_t& moved) {
    if (is_one_run(transfer)) return move_run(file, transfer, writes, moved);
    TransferCutter cutter(file, transfer, writes);
    TransferBatch batch;
    int error = MPI_SUCCESS;
    for (bool ends = false; !ends && cutter.next(batch);) {
        const Moved part = system_call([&] { return perform(*file.system, batch); });
        error = result_of(file, batch, part, moved, ends);
    }
    return error;
}

int move_now(File& file, const FileTransfer& transfer, bool writes, int64_t& moved) {
    moved = 0;
    if (writes)
        if (const int error = check_stream(transfer)) return error;
    if (!is_locked(file, transfer)) return move_batches(file, transfer, writes, moved);
    const LockedTurn turn(file);
    turn.wait();
    const Extent range = range_of(transfer);
    if (const int error = lock_range(file, range, writes)) return error;
    const int error = move_batches(file, transfer, writes, moved);
    // The unlock may store the data, and then reports what a disk or server has refused.
    const int failed = system_call([&] { return file.system->unlock(range); });
    return error || !failed ? error : fail_of(failed, doing(writes), file.name);
}

/// A job of the helper thread: one batch, or a lock.
struct TransferJob : HelperJob {
    OpenFile* system = nullptr;
    TransferBatch batch;
    Extent range;
};

Moved perform_batch(HelperJob& job) {
    auto& mine = static_cast<TransferJob&>(job);
    return perform(*mine.system, mine.batch);
}
Moved perform_lock(HelperJob& job) {
    auto& mine = static_cast<TransferJob&>(job);
    return {0, mine.system->lock(mine.range, mine.batch.writes)};
}
Moved perform_unlock(HelperJob& job) {
    auto& mine = static_cast<TransferJob&>(job);
    return {0, mine.system->unlock(mine.range)};
}

/// Does `work` in this thread, or hands it to the helper thread; await the job afterwards.
progress::RequestDone give(TransferJob& job, Moved (*work)(HelperJob&), bool now) {
    job.work = work;
    job.done = false;
    now ? do_now(job) : start(job);
    return {job};
}

collective::Task move_task(File& file, FileTransfer transfer, bool writes, int64_t& moved) {
    moved = 0;
    int error = writes ? check_stream(transfer) : MPI_SUCCESS;
    if (error) co_return error;
    TransferJob job;
    job.system = file.system.get();
    job.batch.writes = writes;
    const bool locked = is_locked(file, transfer);
    LockedTurn turn;
    if (locked) {
        turn.enqueue(file);
        co_await turn;
        job.range = range_of(transfer);
        do co_await give(job, perform_lock, false);  // may wait for another process, which may need this one's progress
        while (job.moved.system_error == EAGAIN);
        if (job.moved.system_error) co_return fail_of(job.moved.system_error, "lock", file.name);
    }
    TransferCutter cutter(file, transfer, writes);
    for (bool ends = false; !ends && cutter.next(job.batch);) {
        co_await give(job, perform_batch, transfer.blocking);
        error = result_of(file, job.batch, job.moved, moved, ends);
    }
    if (locked) {
        const collective::ErrorHere here(error);
        co_await give(job, perform_unlock, transfer.blocking);
        const int failed = job.moved.system_error;
        error = here.or_else(failed ? fail_of(failed, doing(writes), file.name) : MPI_SUCCESS);
    }
    co_return error;
}

}  // namespace

int check_stream(const FileTransfer& transfer) {
    if (transfer.bytes() == 0 || transfer.view->filetype->size > 0) return MPI_SUCCESS;
    return fail(MPI_ERR_TYPE, "the filetype of the view has no data, so no data can be written");
}

int read_now(File& file, const FileTransfer& transfer, int64_t& moved) { return move_now(file, transfer, false, moved); }

int write_now(File& file, const FileTransfer& transfer, int64_t& moved) { return move_now(file, transfer, true, moved); }

collective::Task read_task(File& file, FileTransfer transfer, int64_t& moved) {
    return move_task(file, transfer, false, moved);
}

collective::Task write_task(File& file, FileTransfer transfer, int64_t& moved) {
    return move_task(file, transfer, true, moved);
}

}  // namespace starling::file
