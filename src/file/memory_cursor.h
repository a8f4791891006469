// Iterates over the blocks of memory of a buffer of the program, in the order of the data, in step with the runs of a file.
#pragma once

#include <algorithm>
#include <cstdint>

#include "datatype/datatype.h"
#include "rma/access.h"

namespace starling::file {

/// Hands out the blocks of a buffer. The buffer's type must outlive the cursor.
class MemoryCursor {
  public:
    explicit MemoryCursor(const rma::LocalBuffer& memory, uint64_t position = 0) : memory_(memory), position_(position) {}

    /// Returns the next block, of at most `most` bytes; one of no bytes at the end.
    iovec next(uint64_t most) {
        if (at_ == filled_) fill();
        if (at_ == filled_) return {};
        iovec& block = window_[at_];
        const iovec taken{block.iov_base, std::min<uint64_t>(block.iov_len, most)};
        block.iov_base = static_cast<std::byte*>(block.iov_base) + taken.iov_len;
        block.iov_len -= taken.iov_len;
        position_ += taken.iov_len;
        if (block.iov_len == 0) ++at_;
        return taken;
    }

  private:
    void fill() {
        at_ = 0;
        filled_ =
            memory_.type ? datatype::blocks(*memory_.type, memory_.count, memory_.buffer, position_, window_, kWindow) : 0;
    }

    rma::LocalBuffer memory_;
    uint64_t position_;
    static constexpr int kWindow = 64;
    iovec window_[kWindow];
    int at_ = 0, filled_ = 0;
};

}  // namespace starling::file
