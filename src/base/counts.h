// Views of count and displacement arrays of either element width, int or 64 bits, for the functions that MPI has in both forms.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling {

/// A read-only array of counts or displacements, of int or 64-bit elements (MPI_Count and MPI_Aint). It does not own the array. A null
/// array converts to false.
class Counts {
  public:
    Counts(const int* values) : values_(values), wide_(false) {}
    Counts(const int64_t* values) : values_(values), wide_(true) {}
    Counts(std::nullptr_t) : values_(nullptr), wide_(false) {}

    int64_t operator[](int64_t i) const {
        return wide_ ? static_cast<const int64_t*>(values_)[i] : static_cast<const int*>(values_)[i];
    }
    explicit operator bool() const { return values_ != nullptr; }
    bool wide() const { return wide_; }
    /// Returns the caller's array if it has 64-bit elements, else nullptr.
    const int64_t* data64() const { return wide_ ? static_cast<const int64_t*>(values_) : nullptr; }
    /// Returns the view that starts at element i.
    Counts from(int64_t i) const {
        return wide_ ? Counts(static_cast<const int64_t*>(values_) + i) : Counts(static_cast<const int*>(values_) + i);
    }

  private:
    const void* values_;
    bool wide_;
};

}  // namespace starling
