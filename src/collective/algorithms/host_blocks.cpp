#include "collective/algorithms/host_blocks.h"

#include <numeric>

#include "collective/collective.h"

namespace starling::collective {

HostBlocks::HostBlocks(const View& v, const HostMap& hosts, const Blocks& blocks)
    : hosts_(hosts),
      blocks_(blocks),
      me_(v.me),
      base_(v.base),
      begin_(hosts.leaders.size()),
      bytes_(hosts.leaders.size()),
      at_(static_cast<size_t>(v.n)) {
    for (int i = 0; i < v.n; ++i) {
        int64_t& sum = bytes_[static_cast<size_t>(hosts.host_of(v.participant(i)))];
        at_[static_cast<size_t>(i)] = sum;
        sum += static_cast<int64_t>(blocks.bytes(i));
    }
    std::exclusive_scan(bytes_.begin(), bytes_.end(), begin_.begin(), int64_t{0});
    for (int i = 0; i < v.n; ++i) at_[static_cast<size_t>(i)] += begin_[static_cast<size_t>(hosts.host_of(v.participant(i)))];
    data_ = buffer_in_order();
    if (data_) return;
    copy_ = Temporary(static_cast<uint64_t>(total()));
    data_ = copy_.data();
    datatype::pack(blocks.type(me_), blocks.count(me_), blocks.at(me_), 0, place(me_), blocks.bytes(me_));
}

/// Returns where the blocks begin in the receive buffer, if it has each block at its place, without gaps; else null.
std::byte* HostBlocks::buffer_in_order() const {
    std::byte* begin = nullptr;
    for (size_t i = 0; i < at_.size(); ++i) {
        const int rank = static_cast<int>(i);
        const Datatype& type = blocks_.type(rank);
        if (blocks_.bytes(rank) == 0) continue;
        if (!datatype::is_block(type, blocks_.count(rank))) return nullptr;
        std::byte* const here = static_cast<std::byte*>(datatype::block_address(type, blocks_.at(rank))) - at_[i];
        if (begin && here != begin) return nullptr;
        begin = here;
    }
    return begin;
}

Task HostBlocks::collect(View node) const {
    const auto bytes = [&](int rank) { return static_cast<int64_t>(blocks_.bytes(rank)); };
    if (!hosts_.leads()) {
        co_await node.send(place(me_), bytes(me_), byte_type(), 0);
        co_return node.error;
    }
    RequestGroup receives(node, 0, node.n);
    for (int i = 1; i < node.n; ++i) {
        const int rank = hosts_.mine[static_cast<size_t>(i)] - base_;
        receives.receive(place(rank), bytes(rank), byte_type(), i);
    }
    co_await receives;
    co_return node.error;
}

Task HostBlocks::distribute(View node) {
    const int error = co_await bcast(node, data_, total(), byte_type(), 0);
    if (!copy_.data()) co_return error;
    for (int i = 0; i < static_cast<int>(at_.size()) && error == MPI_SUCCESS; ++i)
        if (i != me_) datatype::unpack(blocks_.type(i), blocks_.count(i), blocks_.at(i), 0, place(i), blocks_.bytes(i));
    co_return error;
}

}  // namespace starling::collective
