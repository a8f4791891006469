// The first error of an operation, with its sentence. An operation goes on awaiting after it, and whatever fails meanwhile says
// its own sentence on the same thread: so the error has its own copy from where it is noted, and each reader gets both.
#pragma once

#include <cstdint>

#include "mpi.h"

namespace starling::collective {

/// Copied with the view that it is of. Used under the library's lock only.
class FirstError {
  public:
    /// Remembers an error, if it is the first one, with this thread's sentence.
    void note(int error) {
        if (error != MPI_SUCCESS && error_ == MPI_SUCCESS) [[unlikely]]
            keep(error);
    }
    /// The class; its sentence becomes this thread's, or none if it had none.
    operator int() const {
        if (error_ != MPI_SUCCESS) [[unlikely]]
            tell();
        return error_;
    }
    /// Compares the class, and leaves the thread's sentence alone.
    friend bool operator==(const FirstError& first, int error) { return first.error_ == error; }

  private:
    [[gnu::cold]] void keep(int error);
    [[gnu::cold]] void tell() const;

    int error_ = MPI_SUCCESS;
    uint32_t number_ = 0;  ///< of its sentence, if there is an error
};

}  // namespace starling::collective
