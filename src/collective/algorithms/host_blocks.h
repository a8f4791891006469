// The blocks of an allgather in the order of hosts, for algorithms in which one leader of each host exchanges all blocks of the host.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/core/buffers.h"
#include "collective/core/host_map.h"
#include "collective/core/view.h"

namespace starling::collective {

/// All blocks as packed bytes, the blocks of a host together. If the receive buffer has this order already, it is used in place, and no
/// further memory is needed. Members need not agree on that, since the bytes are the same.
class HostBlocks {
  public:
    /// `v`: all participants. Loads this process's block.
    HostBlocks(const View& v, const HostMap& hosts, const Blocks& blocks);

    /// Sends this process's block to the leader of its host, which receives those of all others there. `node`: the view of this host.
    Task collect(View node) const;
    /// Returns one block for each host.
    Blocks parts() const { return {data_, Counts(bytes_.data()), Counts(begin_.data()), byte_type()}; }
    /// Broadcasts all blocks from the leader within the host, and stores them in the receive buffer.
    Task distribute(View node);

  private:
    std::byte* place(int rank) const { return data_ + at_[static_cast<size_t>(rank)]; }
    int64_t total() const { return begin_.back() + bytes_.back(); }
    std::byte* buffer_in_order() const;

    const HostMap& hosts_;
    const Blocks blocks_;
    const int me_, base_;
    std::vector<int64_t> begin_, bytes_;  ///< offset and size of each host's blocks
    std::vector<int64_t> at_;             ///< offset of each rank's block
    Temporary copy_;                      ///< the blocks, unless the receive buffer has their order
    std::byte* data_ = nullptr;
};

}  // namespace starling::collective
