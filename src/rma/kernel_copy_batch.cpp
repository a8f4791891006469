// Batches of kernel copies, for a neighbour's memory that is not mapped here: one system call copies many short blocks, at the latest with
// the next flush.
#include <sys/uio.h>

#include "base/pool.h"
#include "base/state.h"
#include "datatype/datatype.h"
#include "link/host_memory.h"
#include "rma/access.h"

namespace starling::rma {

/// A batch, which has either puts or gets, so that the program's order of puts and gets is kept.
struct CopyBatch {
    static constexpr size_t kMost = 64;
    AccessOperation operation = AccessOperation::put;
    size_t count = 0;
    uint64_t bytes = 0;
    iovec here[kMost], there[kMost];
};

STARLING_STATE MemoryOrder order;

namespace {

/// Longest block that waits for a batch. A system call costs as much as copying some ten thousand bytes, so longer blocks gain nothing by
/// waiting.
constexpr uint64_t kShort = 4096;

const Datatype& byte_type() { return datatype::predefined(MPI_BYTE); }

void start_each(Target& target, const CopyBatch& batch) {
    for (size_t i = 0; i < batch.count; ++i) {
        auto* access = new Access;
        const LocalBuffer local{batch.here[i].iov_base, static_cast<int64_t>(batch.here[i].iov_len), &byte_type()};
        access->operation = batch.operation;
        (batch.operation == AccessOperation::put ? access->origin : access->result) = local;
        access->remote_block = {reinterpret_cast<uint64_t>(batch.there[i].iov_base) - target.address, local.count,
                                &byte_type()};
        access->over = [](Access& over) { delete &over; };
        start(*access, target);
    }
}

}  // namespace

Target::Target() = default;
Target::~Target() { profile::close_traffic(traffic); }

bool Target::can_copy_by_kernel() {
    if (pid != 0 && peer && !link::has_pid({&peer->job, peer->rank}, pid)) pid = 0;
    return pid != 0;
}

bool move_block(Target& target, AccessOperation operation, void* here, uint64_t offset, uint64_t bytes) {
    if (target.mapped) {
        auto* there = reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(target.mapping) + offset);
        if (operation == AccessOperation::put)
            store_block(target, there, here, bytes);
        else
            load_block(target, here, there, bytes);
        return true;
    }
    if (target.pid == 0) return false;
    if (target.batch && (target.batch->operation != operation || target.batch->count == CopyBatch::kMost)) copy_batch(target);
    if (bytes > kShort || target.pid == 0) return false;
    if (!target.batch) target.batch = std::make_unique<CopyBatch>();
    CopyBatch& batch = *target.batch;
    batch.operation = operation;
    batch.here[batch.count] = {here, bytes};
    batch.there[batch.count++] = {reinterpret_cast<void*>(target.address + offset), bytes};
    batch.bytes += bytes;
    return true;
}

void drop_batch(Target& target) {
    // The batch itself stays, since a copy_batch() of this target may be on the stack.
    if (target.batch) target.batch->count = target.batch->bytes = 0;
}

void copy_batch(Target& target) {
    CopyBatch& batch = *target.batch;
    if (batch.count == 0) return;
    if (!target.can_copy_by_kernel() || link::copy_blocks(target.pid, batch.operation == AccessOperation::put, batch.here,
                                                          batch.there, batch.count, batch.bytes)) {
        // The kernel forbids the copy, or the process has ended. Later accesses use packets, whose answers show which is the case.
        target.pid = 0;
        start_each(target, batch);
    } else if (target.traffic) {
        for (size_t i = 0; i < batch.count; ++i) count_in_memory(target, batch.operation, batch.here[i].iov_len);
    }
    batch.count = batch.bytes = 0;
}

}  // namespace starling::rma
