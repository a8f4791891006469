// Updates of memory. There is one implementation for every caller: the owner for a packet, a neighbour in a mapping, the process itself. So
// all updates of one kind of element are atomic with respect to each other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "datatype/datatype.h"
#include "datatype/kernels.h"
#include "datatype/op.h"
#include "rma/update_lock.h"

namespace starling::rma {

using datatype::Datatype;
using datatype::Op;

/// One predefined datatype and the operation on it.
struct Update {
    const Datatype* element = nullptr;
    const Op* op = nullptr;
};

/// The operations that the processor does atomically on a word. Floating-point sums take a compare-and-swap loop, usually of one or two
/// iterations.
enum class WordOperation : uint8_t { none, load, exchange, add, add_float, add_double };
struct UpdateMethod {
    WordOperation known = WordOperation::none;
    uint8_t bytes = 0;                  ///< size of the word; 0: elements are not updated as words
    datatype::Kernel kernel = nullptr;  ///< function for many elements; null: elements are copied
};
UpdateMethod way_of(const Update& update);

/// Computes memory[i] = operand[i] op memory[i] for `count` consecutive elements, each atomically. `operand` and `old` are packed. The
/// previous values are stored in `old`, unless it is null. `operand` may be null for MPI_NO_OP. Without an `exclusion` words are changed
/// one by one by atomic instructions, as in processes that have no update lock. No other process may then change elements that are not
/// words.
void update(const Update& update, std::byte* memory, const std::byte* operand, std::byte* old, int64_t count,
            const UpdateLock* exclusion);
/// Performs an update whose UpdateMethod is known.
void update(const Update& update, UpdateMethod way, std::byte* memory, const std::byte* operand, std::byte* old, int64_t count,
            const UpdateLock* exclusion);
/// Performs an update of one element.
void update_one(const Update& update, UpdateMethod way, std::byte* memory, const std::byte* operand, std::byte* old,
                const UpdateLock* exclusion);

/// Stores `operand` if the element equals `compare`; stores the previous value in `old`.
void compare_and_swap(const Datatype& element, std::byte* memory, const std::byte* operand, const std::byte* compare,
                      std::byte* old, const UpdateLock* exclusion);

/// Returns the size of the memory that `count` consecutive elements take.
inline uint64_t memory_of(const Datatype& element, int64_t count) { return datatype::span(element, count); }

}  // namespace starling::rma
