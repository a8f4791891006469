// Converts between numbers of received bytes and of basic elements.
#include "datatype/datatype.h"
#include "datatype/recipe.h"

namespace starling::datatype {

namespace {

constexpr int64_t kIncomplete = -1;

// elements_in() and bytes_in() descend, at each level, into the one part that is incomplete. They use a loop, because types may be nested
// deeper than the stack.

// Returns the bytes of a pair's value.
int64_t value_bytes(const Datatype& pair) { return pair.size - (pair.true_extent - pair.index_offset); }

// Returns the number of basic elements in the first `bytes` bytes of one element of a type; `bytes` is less than its size.
int64_t elements_in(uint64_t bytes, const Datatype& whole) {
    const Datatype* type = &whole;
    int64_t elements = 0;
    while (bytes > 0) {
        if (!type->recipe) {
            const bool value = type->basic == Basic::pair && bytes == static_cast<uint64_t>(value_bytes(*type));
            return value ? elements + 1 : kIncomplete;
        }
        const Datatype* cut = nullptr;
        uint64_t rest = 0;
        for_each_part(*type->recipe, [&](const RecipePart& part) {
            const int64_t copies = part.count * part.block;
            const uint64_t size = static_cast<uint64_t>(part.type->size);
            if (bytes == 0 || copies == 0 || size == 0) return;
            const uint64_t all = size * static_cast<uint64_t>(copies);
            const uint64_t here = bytes < all ? bytes : all;
            elements += static_cast<int64_t>(here / size) * part.type->elements;
            bytes -= here;
            rest = here % size;
            cut = part.type;
        });
        bytes = rest;
        type = cut;
    }
    return elements;
}

// Returns the packed bytes of the first `elements` basic elements of one element of a type; `elements` is less than it has.
uint64_t bytes_in(int64_t elements, const Datatype& whole) {
    const Datatype* type = &whole;
    uint64_t bytes = 0;
    while (elements > 0) {
        if (!type->recipe) return bytes + static_cast<uint64_t>(value_bytes(*type));  // the type is a pair
        const Datatype* cut = nullptr;
        for_each_part(*type->recipe, [&](const RecipePart& part) {
            const int64_t each = part.type->elements;
            if (cut || elements == 0 || each == 0) return;
            const int64_t copies = part.count * part.block;
            const int64_t here = elements / each < copies ? elements / each : copies;
            bytes += static_cast<uint64_t>(here) * static_cast<uint64_t>(part.type->size);
            elements -= here * each;
            if (here < copies && elements > 0) cut = part.type;
        });
        if (!cut) break;
        type = cut;
    }
    return bytes;
}

}  // namespace

int64_t get_count(uint64_t bytes, const Datatype& type) {
    if (type.size == 0) return bytes == 0 ? 0 : MPI_UNDEFINED;
    const uint64_t size = static_cast<uint64_t>(type.size);
    return bytes % size ? MPI_UNDEFINED : static_cast<int64_t>(bytes / size);
}

int64_t get_elements(uint64_t bytes, const Datatype& type) {
    if (type.size == 0) return bytes == 0 ? 0 : MPI_UNDEFINED;
    const uint64_t size = static_cast<uint64_t>(type.size);
    int64_t elements;
    if (__builtin_mul_overflow(static_cast<int64_t>(bytes / size), type.elements, &elements)) return MPI_UNDEFINED;
    const int64_t rest = elements_in(bytes % size, type);
    return rest == kIncomplete ? MPI_UNDEFINED : elements + rest;
}

uint64_t bytes_of_elements(int64_t elements, const Datatype& type) {
    if (type.elements == 0) return 0;
    return static_cast<uint64_t>(elements / type.elements) * static_cast<uint64_t>(type.size) +
           bytes_in(elements % type.elements, type);
}

}  // namespace starling::datatype
