// One implementation for the int and the large-count form of a function: views of count arguments that
// remember how wide the caller's numbers are.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

#include "mpi.h"

namespace starling::mpi {

/// A read-only array of counts or displacements, of int or 64-bit elements (MPI_Count and MPI_Aint are the
/// same type). Does not own. A null array is false.
class Counts {
  public:
    Counts(const int* values) : values_(values), wide_(false) {}
    Counts(const int64_t* values) : values_(values), wide_(true) {}
    Counts(std::nullptr_t) : values_(nullptr), wide_(false) {}

    MPI_Count operator[](int64_t i) const {
        return wide_ ? static_cast<const int64_t*>(values_)[i] : static_cast<const int*>(values_)[i];
    }
    explicit operator bool() const { return values_ != nullptr; }
    bool wide() const { return wide_; }
    /// The caller's array, if it has 64-bit elements; else nullptr.
    const int64_t* data64() const { return wide_ ? static_cast<const int64_t*>(values_) : nullptr; }
    /// The view that starts at element i.
    Counts from(int64_t i) const {
        return wide_ ? Counts(static_cast<const int64_t*>(values_) + i)
                     : Counts(static_cast<const int*>(values_) + i);
    }

  private:
    const void* values_;
    bool wide_;
};

/// Where a function puts one count. An int that can't hold it becomes MPI_UNDEFINED.
class CountOut {
  public:
    CountOut(int* place) : place_(place), wide_(false) {}
    CountOut(MPI_Count* place) : place_(place), wide_(true) {}
    CountOut(std::nullptr_t) : place_(nullptr), wide_(false) {}

    void set(MPI_Count value) const {
        if (wide_)
            *static_cast<MPI_Count*>(place_) = value;
        else
            *static_cast<int*>(place_) =
                value >= INT_MIN && value <= INT_MAX ? static_cast<int>(value) : MPI_UNDEFINED;
    }
    /// True if set() would keep the value.
    bool holds(MPI_Count value) const { return wide_ || (value >= INT_MIN && value <= INT_MAX); }
    explicit operator bool() const { return place_ != nullptr; }

  private:
    void* place_;
    bool wide_;
};

}  // namespace starling::mpi
