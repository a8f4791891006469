#include "datatype/contents.h"

#include <climits>

namespace starling::datatype {

namespace {

enum class ContentKind : uint8_t { integer, count, address };

// Returns whether argument number i of a recipe (constructor call) is an integer, an address or a large count.
ContentKind kind_of(const Recipe& recipe, size_t i) {
    const auto& a = recipe.args;
    switch (recipe.combiner) {
        case MPI_COMBINER_CONTIGUOUS:
        case MPI_COMBINER_VECTOR:
        case MPI_COMBINER_INDEXED:
        case MPI_COMBINER_INDEXED_BLOCK:
            return ContentKind::count;
        case MPI_COMBINER_HVECTOR:
        case MPI_COMBINER_HINDEXED_BLOCK:
            return i < 2 ? ContentKind::count : ContentKind::address;
        case MPI_COMBINER_HINDEXED:
        case MPI_COMBINER_STRUCT:
            return i <= static_cast<size_t>(a[0]) ? ContentKind::count : ContentKind::address;
        case MPI_COMBINER_SUBARRAY:
            return i == 0 || i + 1 == a.size() ? ContentKind::integer : ContentKind::count;
        case MPI_COMBINER_DARRAY:
            return i >= 3 && i < 3 + static_cast<size_t>(a[2]) ? ContentKind::count : ContentKind::integer;
        case MPI_COMBINER_RESIZED:
            return ContentKind::address;
        default:
            return ContentKind::integer;
    }
}

}  // namespace

bool sort_contents(const Recipe& recipe, bool large, Contents& out) {
    for (size_t i = 0; i < recipe.args.size(); ++i) {
        const int64_t value = recipe.args[i];
        const ContentKind kind = kind_of(recipe, i);
        if (kind == ContentKind::address && !large) {
            out.addresses.push_back(value);
        } else if (kind != ContentKind::integer && large) {
            out.large_counts.push_back(value);
        } else {
            if (value < INT_MIN || value > INT_MAX) return false;
            out.integers.push_back(static_cast<int>(value));
        }
    }
    return true;
}

}  // namespace starling::datatype
