#include "file/two_phase_buffers.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/page_size.h"
#include "file/aggregator_choice.h"
#include "rma/memory.h"

namespace starling::file {

void TwoPhaseBuffers::choose_aggregators(collective::Exchange& exchange, int wanted, const std::string& placement,
                                         const std::vector<std::string>& host_names) {
    if (wanted_ == wanted && placement_ == placement) return;
    wanted_ = wanted;
    placement_ = placement;
    const collective::HostMap* const map = exchange.hosts();
    const bool alone = !map && exchange.each_has_its_host();
    std::vector<int> host_of;
    std::vector<std::string> names;
    for (int i = 0; i < exchange.size; ++i) {
        const int host = map ? map->host_of(i) : alone ? i : 0;
        host_of.push_back(host);
        if (host == static_cast<int>(names.size()))
            names.push_back(host_names.empty() ? std::string() : host_names[static_cast<size_t>(i)]);
    }
    aggregators_ = file::choose_aggregators(host_of, names, wanted, placement);
    std::vector<int> hosts;
    for (const int rank : aggregators_) hosts.push_back(host_of[static_cast<size_t>(rank)]);
    std::sort(hosts.begin(), hosts.end());
    aggregator_hosts_ = std::unique(hosts.begin(), hosts.end()) - hosts.begin();
}

bool TwoPhaseBuffers::provide(int64_t most) {
    if (!memory_ || most_ != most) {
        release();
        most_ = most;
        memory_ = static_cast<std::byte*>(rma::allocate(memory_for(most), kPage));
        shared_ = memory_ != nullptr;
        if (!memory_) {
            plain_.reset(new (std::nothrow) std::byte[memory_for(most)]);
            memory_ = plain_.get();
        }
        if (!memory_) return false;
        spoilt_ = true;
    }
    if (spoilt_)
        for (int turn = 0; turn < 2; ++turn) half(memory_, most, turn).bits.clear(most);
    spoilt_ = false;
    return true;
}

BlockBuffer TwoPhaseBuffers::half(std::byte* memory, int64_t most, int64_t turn) {
    const auto which = static_cast<uint64_t>(turn & 1);
    const auto block = static_cast<uint64_t>(most);
    return {memory + which * block, DepositBits(memory + 2 * block + which * DepositBits::memory_for(most))};
}

void TwoPhaseBuffers::leave_memory() {
    if (!shared_) return;
    memory_ = nullptr;
    shared_ = false;
}

void TwoPhaseBuffers::release() {
    if (shared_) rma::free(memory_);
    plain_.reset();
    memory_ = nullptr;
    shared_ = false;
}

}  // namespace starling::file
