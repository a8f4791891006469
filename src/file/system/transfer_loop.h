// Moves many pieces of memory to or from one run of a file by as few system calls as possible, however little each of them moves.
#pragma once

#include <limits.h>

#include <algorithm>
#include <cerrno>

#include "file/system/open_file.h"

namespace starling::file {

/// Calls `move(offset, pieces, count)` until all pieces are moved. `move` is preadv(2) or pwritev(2), or a stand-in in a test. Interrupted
/// and short calls are repeated. A call that moves nothing ends the transfer: the file's end when reading, the error EIO when writing.
template <class Move>
Moved move_all(int64_t offset, const iovec* pieces, int count, bool writing, Move move) {
    Moved moved;
    size_t skip = 0;  // bytes of pieces[0] that are moved already
    while (count > 0) {
        if (pieces->iov_len == skip) {
            ++pieces, --count, skip = 0;
            continue;
        }
        // After a short call the rest of its piece goes alone, so that no copy of the list is needed.
        const iovec rest{static_cast<char*>(pieces->iov_base) + skip, pieces->iov_len - skip};
        const ssize_t result =
            skip ? move(offset + moved.bytes, &rest, 1) : move(offset + moved.bytes, pieces, std::min(count, IOV_MAX));
        if (result < 0 && errno == EINTR) continue;
        if (result <= 0) {
            moved.system_error = result < 0 ? errno : writing ? EIO : 0;
            return moved;
        }
        moved.bytes += result;
        for (auto left = static_cast<size_t>(result); left > 0;) {
            const size_t part = std::min(left, pieces->iov_len - skip);
            left -= part, skip += part;
            if (skip == pieces->iov_len) ++pieces, --count, skip = 0;
        }
    }
    return moved;
}

}  // namespace starling::file
