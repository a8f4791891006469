// The mark: what a member of a collective operation that has failed sends instead of data, so that its receiver learns the error
// class. It is short enough to wait for nobody, never as long as the data expected, and known by what it says.
//
//   data expected   the mark has    the receiver finds it
//   less than 16    16 bytes        as a message that is too long (protocol/eager.h)
//   16              17 bytes        the same
//   more            16 bytes        in its buffer (collective/core/view.cpp)
//
// The program's own messages are never taken for marks: they travel on another plane.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/config.h"
#include "base/error.h"
#include "base/live.h"
#include "message/channel.h"

namespace starling::message {

struct ErrorMarker {
    char says[12] = {'\x93', 's', 't', 'a', 'r', '\x1b', 'f', 'a', 'i', 'l', 'e', 'd'};
    int32_t error_class = MPI_ERR_OTHER;
    char more[4] = {};

    static constexpr uint64_t kBytes = 16;
    static constexpr uint64_t kMost = kBytes + 1;

    /// Whether it goes without asking the receiver first.
    static bool can_go() { return live(config().eager_limit) >= kMost; }
    /// How long it is where `expected` bytes are.
    static constexpr uint64_t length(uint64_t expected) { return expected == kBytes ? kMost : kBytes; }

    /// The error class that a message says; MPI_SUCCESS if it is no mark.
    [[gnu::cold]] static int read(const void* message, uint64_t bytes) {
        if (bytes != kBytes && bytes != kMost) return MPI_SUCCESS;
        if (std::memcmp(message, of(MPI_ERR_OTHER).says, sizeof says) != 0) return MPI_SUCCESS;
        int32_t said;
        std::memcpy(&said, static_cast<const std::byte*>(message) + offsetof(ErrorMarker, error_class), sizeof said);
        return said > MPI_SUCCESS && said < kClasses ? said : MPI_ERR_OTHER;
    }

    /// Where it may be sent from: one for each class, there for ever.
    static const ErrorMarker& of(int error_class) {
        static constexpr std::array<ErrorMarker, kClasses> marks = [] {
            std::array<ErrorMarker, kClasses> all;
            for (int each = MPI_SUCCESS + 1; each < kClasses; ++each) all[static_cast<size_t>(each)].error_class = each;
            return all;
        }();
        return marks[error_class > MPI_SUCCESS && error_class < kClasses ? static_cast<size_t>(error_class) : MPI_ERR_OTHER];
    }

    /// What a receiver says of one.
    [[gnu::cold]] static int failed_elsewhere(int error_class) {
        return fail(error_class, "a collective operation failed elsewhere: a member has ended, or had an error");
    }

  private:
    static constexpr int kClasses = 128;  ///< more than there are
};
static_assert(sizeof(ErrorMarker) >= ErrorMarker::kMost);

/// Whether marks are looked for in the messages of a channel: not in those of the program.
inline bool may_bring_marks(const MatchContext& channel) { return (channel.context() & 15) != 0; }

}  // namespace starling::message
