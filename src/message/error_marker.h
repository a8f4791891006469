// ErrorMarker: sent by a failed member of a collective operation in place of its data, so that the receiver learns the error class.
// It is always sent eagerly (start_eager_send()). It never has the length of the expected data, and its first bytes identify it.
//
//   data expected   marker length   where the receiver detects it
//   less than 16    16 bytes        as a message that is too long (protocol/eager.h).
//   16              17 bytes        as a message that is too long (protocol/eager.h).
//   more            16 bytes        in its buffer (collective/core/view.cpp).
//
// After a failure the sender and the receiver may be in different operations and expect different lengths, so a receiver takes either length.
//
// The program's own messages are never taken for markers, because they use another match context.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "message/channel.h"

namespace starling::message {

struct ErrorMarker {
    char magic[12] = {'\x93', 's', 't', 'a', 'r', '\x1b', 'f', 'a', 'i', 'l', 'e', 'd'};
    int32_t error_class = MPI_ERR_OTHER;
    char more[4] = {};

    static constexpr uint64_t kBytes = 16;
    static constexpr uint64_t kMost = kBytes + 1;

    /// Returns the marker's length in place of `expected` bytes of data.
    static constexpr uint64_t length(uint64_t expected) { return expected == kBytes ? kMost : kBytes; }

    /// Returns the error class that a message carries; MPI_SUCCESS if the message is not an error marker.
    [[gnu::cold]] static int read(const void* message, uint64_t bytes) {
        if (bytes != kBytes && bytes != kMost) return MPI_SUCCESS;
        if (std::memcmp(message, of(MPI_ERR_OTHER).magic, sizeof magic) != 0) return MPI_SUCCESS;
        int32_t said;
        std::memcpy(&said, static_cast<const std::byte*>(message) + offsetof(ErrorMarker, error_class), sizeof said);
        return said > MPI_SUCCESS && said < kClasses ? said : MPI_ERR_OTHER;
    }

    /// Returns the static marker of an error class. It is never freed, so a send may use its memory at any time.
    static const ErrorMarker& of(int error_class) {
        static constexpr std::array<ErrorMarker, kClasses> marks = [] {
            std::array<ErrorMarker, kClasses> all;
            for (int each = MPI_SUCCESS + 1; each < kClasses; ++each) all[static_cast<size_t>(each)].error_class = each;
            return all;
        }();
        return marks[error_class > MPI_SUCCESS && error_class < kClasses ? static_cast<size_t>(error_class) : MPI_ERR_OTHER];
    }

    /// Sets the error text of a receive that got an error marker, and returns the error class.
    [[gnu::cold]] static int failed_elsewhere(int error_class) {
        return fail(error_class, "a collective operation failed at another member: it ended or had an error");
    }

  private:
    static constexpr int kClasses = 128;  ///< size of the table of markers, larger than the number of error classes
};
static_assert(sizeof(ErrorMarker) >= ErrorMarker::kMost);

/// Returns whether messages of a match context may be error markers. False for the match context of the program's own point-to-point
/// messages (plane 0).
inline bool may_bring_marks(const MatchContext& channel) { return (channel.context() & 15) != 0; }

}  // namespace starling::message
