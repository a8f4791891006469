// Recipes: the constructor calls of derived types. Kept for MPI_Type_get_contents; layouts, external32 and element counts are computed from
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "datatype/datatype.h"

namespace starling::datatype {

struct Recipe {
    int combiner = MPI_COMBINER_NAMED;
    bool large = false;  ///< whether the type was created by the large-count form of the constructor
    /// The numbers passed to the constructor, in the order of its C parameters; the elements of arrays stand at their array's position.
    std::vector<int64_t> args;
    /// The constituent types, retained.
    std::vector<Datatype*> types;
    /// For subarrays, distributed arrays and value-index pairs: an equivalent type made of simpler constructors, retained.
    Datatype* equivalent = nullptr;
    int64_t external = 0;  ///< size of an element in external32, bytes; -1: does not fit in 64 bits
    /// Link in the list of destroyed types' recipes whose constituents are still to be released.
    mutable const Recipe* next_dead = nullptr;
};

/// Equally spaced copies of a constituent type: for i < count and j < block, one at offset + i * stride + j * type.extent.
struct RecipePart {
    int64_t offset;
    int64_t count;
    int64_t stride;
    int64_t block;
    const Datatype* type;
};

/// Calls visit(RecipePart) for each part of a type that has a recipe, in type map order. For existing types all products fit in 64 bits;
/// for a type under construction, check this first (products_fit() in bounds.cpp).
template <class Visit>
void for_each_part(const Recipe& recipe, Visit&& visit) {
    const int64_t* a = recipe.args.data();
    const Datatype* old = recipe.equivalent ? recipe.equivalent : recipe.types.empty() ? nullptr : recipe.types[0];
    switch (recipe.combiner) {
        case MPI_COMBINER_CONTIGUOUS:
            return visit(RecipePart{0, 1, 0, a[0], old});
        case MPI_COMBINER_VECTOR:
            return visit(RecipePart{0, a[0], a[2] * old->extent, a[1], old});
        case MPI_COMBINER_HVECTOR:
            return visit(RecipePart{0, a[0], a[2], a[1], old});
        case MPI_COMBINER_INDEXED:
            for (int64_t i = 1; i <= a[0]; ++i) visit(RecipePart{a[a[0] + i] * old->extent, 1, 0, a[i], old});
            return;
        case MPI_COMBINER_HINDEXED:
            for (int64_t i = 1; i <= a[0]; ++i) visit(RecipePart{a[a[0] + i], 1, 0, a[i], old});
            return;
        case MPI_COMBINER_INDEXED_BLOCK:
            for (int64_t i = 0; i < a[0]; ++i) visit(RecipePart{a[2 + i] * old->extent, 1, 0, a[1], old});
            return;
        case MPI_COMBINER_HINDEXED_BLOCK:
            for (int64_t i = 0; i < a[0]; ++i) visit(RecipePart{a[2 + i], 1, 0, a[1], old});
            return;
        case MPI_COMBINER_STRUCT:
            for (int64_t i = 1; i <= a[0]; ++i)
                visit(RecipePart{a[a[0] + i], 1, 0, a[i], recipe.types[static_cast<size_t>(i - 1)]});
            return;
        default:
            if (old) visit(RecipePart{0, 1, 0, 1, old});
            return;
    }
}

}  // namespace starling::datatype
