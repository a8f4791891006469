// Fast paths of the most frequent window accesses. They require contiguous elements of one predefined type, memory that is mapped here, and
// an epoch that allows the access. All conditions are checked together. If any is not met, the caller uses operation.h, which also finds
// the errors.
#pragma once

#include "window/epoch.h"
#include "window/window.h"

namespace starling::window {

/// The arguments of the last valid update, so that a call that repeats them skips the checks. Its type and operation are predefined, so
/// they are never freed.
struct CachedUpdate {
    MPI_Datatype type = nullptr;
    MPI_Op op = nullptr;
    rma::Update update;
    rma::UpdateMethod way;
};
extern CachedUpdate last_found;

/// A contiguous block of a target's mapped memory that may be accessed.
struct NearBlock {
    WindowTarget* remote;
    std::byte* memory;
    uint64_t bytes;
};

/// Returns the bytes of `count` elements if they are one block that begins at the buffer's address; otherwise 0.
inline uint64_t block_bytes(MPI_Datatype handle, MPI_Count count) {
    constexpr uint64_t kMany = uint64_t{1} << 48;
    const uintptr_t value = reinterpret_cast<uintptr_t>(handle) - 0x200;
    if (value >= datatype::predefined_types.size() || static_cast<uint64_t>(count) > kMany) return 0;
    const datatype::Datatype& type = datatype::predefined_types[value];
    return type.contiguous ? static_cast<uint64_t>(type.size) * static_cast<uint64_t>(count) : 0;
}

inline bool find_mapped(Window& window, int rank, MPI_Aint disp, uint64_t bytes, NearBlock& block) {
    if (static_cast<size_t>(rank) >= window.remotes.size()) return false;
    WindowTarget* const to = window.remotes.find(rank);
    if (!to || !to->mapped || (to->held == LockHeld::no && window.epoch != Epoch::fence)) return false;
    int64_t offset;
    if (__builtin_mul_overflow(int64_t{disp}, to->disp_unit, &offset)) return false;
    if (bytes - 1 >= to->bytes || static_cast<uint64_t>(offset) > to->bytes - bytes) return false;
    window.fence_used = true;
    block = {to, to->target.mapping + offset, bytes};
    return true;
}

inline bool put_mapped(Window& window, const void* origin, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint disp) {
    NearBlock block;
    if (!origin || !find_mapped(window, rank, disp, block_bytes(type, count), block)) return false;
    rma::store_block(block.remote->target, block.memory, origin, block.bytes);
    return true;
}

inline bool get_mapped(Window& window, void* result, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint disp) {
    NearBlock block;
    if (!result || !find_mapped(window, rank, disp, block_bytes(type, count), block)) return false;
    rma::load_block(block.remote->target, result, block.memory, block.bytes);
    return true;
}

/// Performs an update in the target's mapped memory. `old` is null if the previous value is not wanted. Returns false if the caller must
/// use operation.h.
inline bool update_mapped(Window& window, const void* origin, void* old, MPI_Count count, MPI_Datatype type, int rank,
                          MPI_Aint disp, MPI_Op op) {
    if (type != last_found.type || op != last_found.op) return false;
    const bool looks = last_found.way.known == rma::WordOperation::load;
    NearBlock block;
    if ((!origin && !looks) || !find_mapped(window, rank, disp, block_bytes(type, count), block)) return false;
    const rma::Target& target = block.remote->target;
    rma::count_in_memory(target, rma::AccessOperation::update, block.bytes);
    rma::before_update(looks);
    const auto* operand = looks ? nullptr : static_cast<const std::byte*>(origin);
    if (count == 1)
        rma::update_one(last_found.update, last_found.way, block.memory, operand, static_cast<std::byte*>(old),
                        target.exclusion);
    else
        rma::update(last_found.update, last_found.way, block.memory, operand, static_cast<std::byte*>(old), count,
                    target.exclusion);
    return true;
}

/// Returns whether the datatype can be used in compare-and-swap.
inline bool can_be_compared(const datatype::Datatype& type) {
    using datatype::Basic;
    return type.size <= 16 && type.basic >= Basic::byte && type.basic <= Basic::logical128 && type.basic != Basic::packed;
}

inline bool swap_mapped(Window& window, const void* origin, const void* compare, void* old, MPI_Datatype type, int rank,
                        MPI_Aint disp) {
    NearBlock block;
    if (!origin || !compare || !old || !find_mapped(window, rank, disp, block_bytes(type, 1), block)) return false;
    const datatype::Datatype& element = datatype::predefined(type);
    if (!can_be_compared(element)) return false;
    const rma::Target& target = block.remote->target;
    rma::compare_and_swap_in_mapping(target, element, static_cast<uint64_t>(block.memory - target.mapping),
                                     static_cast<const std::byte*>(origin), static_cast<const std::byte*>(compare),
                                     static_cast<std::byte*>(old));
    return true;
}

/// Flushes a target without accesses in progress. Returns false if there are any, or if a poll is due; the caller must then use flush().
inline bool flush_mapped(Window& window, int rank) {
    if (static_cast<size_t>(rank) >= window.remotes.size()) return false;
    const WindowTarget* const to = window.remotes.find(rank);
    if (!to || to->held == LockHeld::no || to->target.open != 0 || to->target.batch || to->target.error) return false;
    if ((idle_flushes + 1) % kFlushesPerLook == 0) return false;
    ++idle_flushes;
    rma::note_flush();
    return true;
}

}  // namespace starling::window
