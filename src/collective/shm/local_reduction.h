// Helpers of the shared-memory stage's operations: operation kinds for the buffers' headers, packing, and reductions in rank order.
#pragma once

#include "collective/core/buffers.h"
#include "collective/shm/operations.h"

namespace starling::collective::node {

inline uint32_t kind_of(CollectiveKind kind, int root = 0) {
    return (static_cast<uint32_t>(kind) + 1) << 16 | static_cast<uint32_t>(root);
}

inline uint32_t bytes_of(const Datatype& type, int64_t count) {
    return static_cast<uint32_t>(datatype::packed_size(type, count));
}

/// Packs `count` elements into shared memory at `out`.
inline void pack(EngineSync& sync, const Datatype& type, int64_t count, const void* buffer, std::byte* out) {
    datatype::pack(sync.copies, type, count, buffer, 0, out, datatype::packed_size(type, count));
}
inline void unpack(const Datatype& type, int64_t count, void* buffer, const std::byte* in) {
    datatype::unpack(type, count, buffer, 0, in, datatype::packed_size(type, count));
}

/// Reduces packed operands: result = slot(first) ∘ … ∘ slot(last - 1). `result` is a buffer of the type.
template <class Slot>
int fold(Slot slot, ParticipantRange range, void* result, int64_t count, const Datatype& type, const Op& op) {
    int next = range.last - 1;
    if (!datatype::is_block(type, count)) {
        Temporary operand(type, count);
        unpack(type, count, result, slot(next));
        while (--next >= range.first) {
            unpack(type, count, operand.data(), slot(next));
            if (const int error = datatype::apply(op, operand.data(), result, count, type)) return error;
        }
        return MPI_SUCCESS;
    }
    // A packed operand has the layout of the type from true_lb on, so shift its address to where such a buffer would begin.
    const auto operand = [&](int i) { return slot(i) - type.true_lb; };
    if (next == range.first) {
        std::memcpy(datatype::block_address(type, result), slot(next), datatype::packed_size(type, count));
        return MPI_SUCCESS;
    }
    --next;
    int error = datatype::apply_to(op, operand(next), operand(next + 1), result, count, type);
    while (error == MPI_SUCCESS && --next >= range.first) error = datatype::apply(op, operand(next), result, count, type);
    return error;
}

/// Reduces like fold(), with a packed result.
template <class Slot>
int fold_packed(EngineSync& sync, Slot slot, ParticipantRange range, std::byte* result, int64_t count, const Datatype& type,
                const Op& op) {
    if (datatype::is_block(type, count)) return fold(slot, range, result - type.true_lb, count, type, op);
    Temporary unpacked(type, count);
    const int error = fold(slot, range, unpacked.data(), count, type, op);
    pack(sync, type, count, unpacked.data(), result);
    return error;
}

}  // namespace starling::collective::node
