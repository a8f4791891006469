#include "datatype/bounds.h"

#include <algorithm>
#include <cstdint>

#include "datatype/layout.h"

namespace starling::datatype {

namespace {

using Wide = __int128;

bool fits(Wide value) { return value >= INT64_MIN && value <= INT64_MAX; }

struct ByteBounds {
    Wide low = 0, high = 0;
    bool any = false;

    void add(Wide from, Wide to) {
        low = any ? std::min(low, from) : from;
        high = any ? std::max(high, to) : to;
        any = true;
    }
    bool good() const { return fits(low) && fits(high) && fits(high - low); }
};

class BoundsFinder {
  public:
    void add(const RecipePart& part) {
        const Datatype& type = *part.type;
        const bool holds_nothing = type.elements == 0 && !type.marked;
        if (part.count == 0 || part.block == 0 || holds_nothing) return;
        const Wide outer = Wide{part.stride} * (part.count - 1), inner = Wide{type.extent} * (part.block - 1);
        good_ = good_ && fits(outer) && fits(inner);
        const Wide low = part.offset + std::min<Wide>(0, outer) + std::min<Wide>(0, inner);
        const Wide high = part.offset + std::max<Wide>(0, outer) + std::max<Wide>(0, inner);
        if (type.marked) marks_.add(low + type.lb, high + type.lb + type.extent);
        if (type.size > 0) data_.add(low + type.true_lb, high + type.true_lb + type.true_extent);
        alignment_ = std::max(alignment_, type.alignment);
        Wide copies = Wide{part.count} * part.block;
        good_ = good_ && fits(copies);
        size_ += good_ ? copies * type.size : 0;
        elements_ += good_ ? copies * type.elements : 0;
        good_ = good_ && fits(size_) && fits(elements_);
    }

    bool store(Datatype& type) {
        ByteBounds whole = marks_.any ? marks_ : data_;
        const Wide rest = (whole.high - whole.low) % alignment_;
        if (!marks_.any && rest) whole.high += alignment_ - rest;
        if (!good_ || !data_.good() || !whole.good()) return false;
        type.size = static_cast<int64_t>(size_);
        type.elements = static_cast<int64_t>(elements_);
        type.lb = static_cast<int64_t>(whole.low);
        type.extent = static_cast<int64_t>(whole.high - whole.low);
        type.true_lb = static_cast<int64_t>(data_.low);
        type.true_extent = static_cast<int64_t>(data_.high - data_.low);
        type.marked = marks_.any;
        type.alignment = alignment_;
        return true;
    }

  private:
    ByteBounds data_, marks_;
    Wide size_ = 0, elements_ = 0;
    uint8_t alignment_ = 1;
    bool good_ = true;
};

// Returns whether displacements that are counted in elements still fit in 64 bits when counted in bytes.
bool products_fit(const Recipe& recipe) {
    const auto& a = recipe.args;
    size_t first = 0, last = 0;
    if (recipe.combiner == MPI_COMBINER_VECTOR) {
        first = 2, last = 3;
    } else if (recipe.combiner == MPI_COMBINER_INDEXED) {
        first = 1 + static_cast<size_t>(a[0]), last = a.size();
    } else if (recipe.combiner == MPI_COMBINER_INDEXED_BLOCK) {
        first = 2, last = a.size();
    }
    for (; first < last; ++first)
        if (!fits(Wide{a[first]} * recipe.types[0]->extent)) return false;
    return true;
}

}  // namespace

bool set_bounds(Datatype& type, const Recipe& recipe) {
    if (!products_fit(recipe)) return false;
    BoundsFinder bounds;
    for_each_part(recipe, [&](const RecipePart& part) { bounds.add(part); });
    return bounds.store(type);
}

}  // namespace starling::datatype
