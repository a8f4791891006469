// The first error of an operation, with its text. An operation continues to await its messages after the error, and later failures set
// their own texts on the same thread. So the error keeps a copy of its text from the moment when it is noted, and a reader gets both.
#pragma once

#include <cstdint>

#include "mpi.h"

namespace starling::collective {

/// The first error of one operation. Copied together with its view. Used only under the library's lock.
class FirstError {
  public:
    /// Stores an error, if it is the first one, with this thread's failure text.
    void note(int error) {
        if (error != MPI_SUCCESS && error_ == MPI_SUCCESS) [[unlikely]]
            record(error);
    }
    /// Returns the error class and restores its text as this thread's failure text (none if it had none).
    operator int() const {
        if (error_ != MPI_SUCCESS) [[unlikely]]
            restore_text();
        return error_;
    }
    /// Returns whether the first error is of class `error` (MPI_SUCCESS: whether there was none). Unlike the conversion to int, it leaves
    /// the thread's failure text unchanged.
    friend bool operator==(const FirstError& first, int error) { return first.error_ == error; }

  private:
    [[gnu::cold]] void record(int error);
    [[gnu::cold]] void restore_text() const;

    int error_ = MPI_SUCCESS;
    uint32_t number_ = 0;  ///< number of the error's stored text; only valid if there is an error
};

}  // namespace starling::collective
