// Blocks: one rank's array of per-rank pieces of a buffer, in any of the forms in which MPI functions describe them.
#pragma once

#include <cstdint>

#include "base/counts.h"
#include "datatype/datatype.h"

namespace starling::collective {

using datatype::Datatype;

/// Returns the address of element `index` of a buffer of `type`.
inline void* element(void* buffer, int64_t index, const Datatype& type) {
    return static_cast<char*>(buffer) + index * type.extent;
}
inline const void* element(const void* buffer, int64_t index, const Datatype& type) {
    return static_cast<const char*>(buffer) + index * type.extent;
}

/// Describes blocks and owns nothing: arrays and types must last as long as the operation.
class Blocks {
  public:
    /// Describes blocks of `count` elements per rank, one after the other (gather, alltoall, …).
    Blocks(const void* buffer, int64_t count, const Datatype& type)
        : buffer_(const_cast<void*>(buffer)), count_(count), uniform_(true), type_(&type) {}
    /// Describes blocks by counts and displacements in elements of one type (the v functions).
    Blocks(const void* buffer, Counts counts, Counts displacements, const Datatype& type)
        : buffer_(const_cast<void*>(buffer)), counts_(counts), displacements_(displacements), type_(&type) {}
    /// Describes blocks by a type for each, with displacements in bytes (alltoallw).
    Blocks(const void* buffer, Counts counts, Counts displacements, const Datatype* const* types)
        : buffer_(const_cast<void*>(buffer)), counts_(counts), displacements_(displacements), types_(types) {}

    void* at(int rank) const {
        if (uniform_) return element(buffer_, rank * count_, *type_);
        return static_cast<char*>(buffer_) + displacements_[rank] * (types_ ? 1 : type_->extent);
    }
    int64_t count(int rank) const { return uniform_ ? count_ : counts_[rank]; }
    const Datatype& type(int rank) const { return types_ ? *types_[rank] : *type_; }
    uint64_t bytes(int rank) const { return datatype::packed_size(type(rank), count(rank)); }
    /// Returns whether all blocks have the same count and type and lie one after the other.
    bool uniform() const { return uniform_; }

  private:
    void* buffer_;
    int64_t count_ = 0;
    bool uniform_ = false;
    Counts counts_ = nullptr, displacements_ = nullptr;
    const Datatype* type_ = nullptr;
    const Datatype* const* types_ = nullptr;
};

/// The number of a vector's elements that each rank gets: the same for all, or an array of counts (reduce_scatter).
class Shares {
  public:
    explicit Shares(int64_t each) : each_(each) {}
    explicit Shares(Counts counts) : counts_(counts) {}
    int64_t operator[](int rank) const { return counts_ ? counts_[rank] : each_; }
    int64_t total(int ranks) const {
        if (!counts_) return each_ * ranks;
        int64_t sum = 0;
        for (int i = 0; i < ranks; ++i) sum += counts_[i];
        return sum;
    }

  private:
    int64_t each_ = 0;
    Counts counts_ = nullptr;
};

}  // namespace starling::collective
