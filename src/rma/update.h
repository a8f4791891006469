// What updates do to memory. There is one way, whoever does it: the owner for a packet, a neighbour in a mapping of the memory,
// the process to itself. So all updates of one kind of element see each other as single steps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "datatype/datatype.h"
#include "datatype/op.h"

namespace starling::rma {

using datatype::Datatype;
using datatype::Op;

/// In memory of all who can reach a region: a lock that knows its holder, so that one who dies in it does not keep it. Held
/// for a few hundred ns, while elements are changed that no single instruction can change.
struct Guard {
    std::atomic<uint32_t> holder;  ///< 0: nobody; else a process id
    void lock();
    void unlock();
};

/// One predefined datatype, and what is done to it.
struct Update {
    const Datatype* element = nullptr;
    const Op* op = nullptr;
};

/// memory[i] = operand[i] op memory[i] for `count` elements in a row at `memory`, each in one step. `operand` and `old` are
/// packed, without gaps; the values before go to `old`, unless it is null. `operand` may be null for MPI_NO_OP. `guard` may be null where no other
/// process changes the memory.
void update(const Update& update, std::byte* memory, const std::byte* operand, std::byte* old, int64_t count, Guard* guard);

/// Stores `operand` if the element equals `compare`; gives the value before.
void compare_and_swap(const Datatype& element, std::byte* memory, const std::byte* operand, const std::byte* compare,
                      std::byte* old, Guard* guard);

/// Bytes of memory that `count` elements in a row take.
inline uint64_t memory_of(const Datatype& element, int64_t count) { return datatype::span(element, count); }

}  // namespace starling::rma
