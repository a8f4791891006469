// The memory of collective transfers of one file, which is kept between calls: an aggregator has two halves for blocks of the file, each
// with its bits. It is in the shared heap, so that the processes of the host copy their data from and to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collective/core/exchange.h"
#include "collective/shm/operation_queue.h"
#include "file/deposit_bits.h"

namespace starling::file {

/// One half of an aggregator's buffer.
struct BlockBuffer {
    std::byte* data = nullptr;  ///< null: this process cannot access the buffer
    DepositBits bits;
};

class TwoPhaseBuffers {
  public:
    TwoPhaseBuffers() = default;
    TwoPhaseBuffers(const TwoPhaseBuffers&) = delete;
    ~TwoPhaseBuffers() { release(); }

    /// Chooses the aggregators among the members of the file's communicator by the hints cb_nodes and cb_config_list
    /// (file/aggregator_choice.h). The same on all members. `host_names`: one per member; empty if the placement names no host.
    void choose_aggregators(collective::Exchange& exchange, int wanted, const std::string& placement,
                            const std::vector<std::string>& host_names);
    const std::vector<int>& aggregators() const { return aggregators_; }
    /// Returns the number of hosts with aggregators.
    int64_t aggregator_hosts() const { return aggregator_hosts_; }

    /// Provides memory for two blocks of at most `most` bytes, with no bit marked. Returns false if there is none.
    bool provide(int64_t most);
    /// Returns the memory's address if other processes of the host can map it, else 0.
    uint64_t shared_address() const { return shared_ ? reinterpret_cast<uint64_t>(memory_) : 0; }
    std::byte* memory() const { return memory_; }
    /// Notes that an operation failed and may have left marked bits.
    void spoil() { spoilt_ = true; }

    /// Lets go of the memory without freeing it, because other members may still write to it.
    void leave_memory();

    /// Bytes of memory for two blocks of at most `most` bytes.
    static uint64_t memory_for(int64_t most) { return 2 * (static_cast<uint64_t>(most) + DepositBits::memory_for(most)); }
    /// Returns one half of memory for blocks of at most `most` bytes.
    static BlockBuffer half(std::byte* memory, int64_t most, int64_t turn);

    collective::OperationQueue turns;  ///< operations of the file, one after the other

  private:
    void release();
    std::byte* memory_ = nullptr;
    int64_t most_ = 0;
    bool shared_ = false, spoilt_ = false;
    std::unique_ptr<std::byte[]> plain_;  ///< the memory, if there is no shared heap
    std::vector<int> aggregators_;
    int wanted_ = -1;  ///< hints by which they were chosen; -1: not chosen yet
    std::string placement_;
    int64_t aggregator_hosts_ = 0;
};

}  // namespace starling::file
