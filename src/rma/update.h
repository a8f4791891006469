// What updates do to memory. There is one way, whoever does it: the owner for a packet, a neighbour in a mapping of the memory,
// the process to itself. So all updates of one kind of element see each other as single steps.
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

/// One predefined datatype, and what is done to it.
struct Update {
    const Datatype* element = nullptr;
    const Op* op = nullptr;
};

/// What the processor does by itself with a word; sums of floating-point numbers with a try or two.
enum class Known : uint8_t { none, load, exchange, add, add_float, add_double };
struct Way {
    Known known = Known::none;
    uint8_t bytes = 0;                  ///< of the word; 0: an element is none
    datatype::Kernel kernel = nullptr;  ///< what does it to many; null: copies
};
Way way_of(const Update& update);

/// memory[i] = operand[i] op memory[i] for `count` elements in a row at `memory`, each in one step. `operand` and `old` are
/// packed, without gaps; the values before go to `old`, unless it is null. `operand` may be null for MPI_NO_OP. Without an `exclusion`
/// words are changed by the processor's instructions one by one, as those do it who know of none, and nobody else changes elements
/// of other kinds.
void update(const Update& update, std::byte* memory, const std::byte* operand, std::byte* old, int64_t count,
            const UpdateLock* exclusion);
/// The same where the way is known.
void update(const Update& update, Way way, std::byte* memory, const std::byte* operand, std::byte* old, int64_t count,
            const UpdateLock* exclusion);
/// The same of one element.
void update_one(const Update& update, Way way, std::byte* memory, const std::byte* operand, std::byte* old,
                const UpdateLock* exclusion);

/// Stores `operand` if the element equals `compare`; gives the value before.
void compare_and_swap(const Datatype& element, std::byte* memory, const std::byte* operand, const std::byte* compare,
                      std::byte* old, const UpdateLock* exclusion);

/// Bytes of memory that `count` elements in a row take.
inline uint64_t memory_of(const Datatype& element, int64_t count) { return datatype::span(element, count); }

}  // namespace starling::rma
