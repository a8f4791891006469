// How much of a type map a number of received bytes fills, and the reverse.
#include "datatype/datatype.h"
#include "datatype/recipe.h"

namespace starling::datatype {

namespace {

constexpr int64_t kIncomplete = -1;

// Basic elements in the first `bytes` bytes of one element of a type, fewer than its size.
int64_t elements_in(uint64_t bytes, const Datatype& type) {
    if (bytes == 0) return 0;
    if (!type.recipe) {
        if (type.basic != Basic::pair) return kIncomplete;
        const int64_t value_bytes = type.size - (type.true_extent - type.index_offset);
        return bytes == static_cast<uint64_t>(value_bytes) ? 1 : kIncomplete;
    }
    int64_t elements = 0;
    for_each_part(*type.recipe, [&](const Part& part) {
        if (bytes == 0 || elements == kIncomplete) return;
        const int64_t copies = part.count * part.block;
        const uint64_t size = static_cast<uint64_t>(part.type->size);
        if (copies == 0 || size == 0) return;
        const uint64_t all = size * static_cast<uint64_t>(copies);
        const uint64_t here = bytes < all ? bytes : all;
        elements += static_cast<int64_t>(here / size) * part.type->elements;
        bytes -= here;
        const int64_t rest = elements_in(here % size, *part.type);
        elements = rest == kIncomplete ? kIncomplete : elements + rest;
    });
    return elements;
}

// Packed bytes of the first `elements` basic elements of one element of a type, fewer than it has.
uint64_t bytes_in(int64_t elements, const Datatype& type) {
    if (elements == 0) return 0;
    if (!type.recipe) {  // only pairs have more than one
        return static_cast<uint64_t>(type.size - (type.true_extent - type.index_offset));
    }
    uint64_t bytes = 0;
    for_each_part(*type.recipe, [&](const Part& part) {
        const int64_t each = part.type->elements;
        if (elements == 0 || each == 0) return;
        const int64_t copies = part.count * part.block;
        const int64_t here = elements / each < copies ? elements / each : copies;
        bytes += static_cast<uint64_t>(here) * static_cast<uint64_t>(part.type->size);
        elements -= here * each;
        if (here < copies && elements > 0) {
            bytes += bytes_in(elements, *part.type);
            elements = 0;
        }
    });
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
