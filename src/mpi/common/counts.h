// Lets one implementation serve the int and the large-count form of a function: views of count arguments that remember whether the caller's
// numbers are ints or MPI_Counts.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

#include "base/counts.h"
#include "mpi.h"

namespace starling::mpi {

using starling::Counts;

/// The place where a function stores one count. An int that cannot hold the value becomes MPI_UNDEFINED.
class CountOut {
  public:
    CountOut(int* place) : place_(place), wide_(false) {}
    CountOut(MPI_Count* place) : place_(place), wide_(true) {}
    CountOut(std::nullptr_t) : place_(nullptr), wide_(false) {}

    void set(MPI_Count value) const {
        if (wide_)
            *static_cast<MPI_Count*>(place_) = value;
        else
            *static_cast<int*>(place_) = value >= INT_MIN && value <= INT_MAX ? static_cast<int>(value) : MPI_UNDEFINED;
    }
    /// Returns whether set() would store the value unchanged.
    bool holds(MPI_Count value) const { return wide_ || (value >= INT_MIN && value <= INT_MAX); }
    explicit operator bool() const { return place_ != nullptr; }

  private:
    void* place_;
    bool wide_;
};

}  // namespace starling::mpi
