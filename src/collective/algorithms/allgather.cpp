#include <algorithm>

#include "collective/algorithms.h"

namespace starling::collective {

Task allgather_ring(View v, Blocks blocks) {
    const int right = (v.me + 1) % v.n, left = (v.me - 1 + v.n) % v.n;
    for (int step = 0; step < v.n - 1; ++step) {
        const int out = (v.me - step + v.n) % v.n, in = (v.me - step - 1 + v.n) % v.n;
        co_await v.send_receive(blocks.at(out), blocks.count(out), blocks.type(out), right, blocks.at(in), blocks.count(in),
                                blocks.type(in), left);
    }
    co_return v.error;
}

Task allgather_linear(View v, Blocks blocks) {
    return allgather_linear_from(v, blocks.at(v.me), blocks.count(v.me), blocks.type(v.me), blocks);
}

Task allgather_linear_from(View v, const void* own, int64_t count, const Datatype& type, Blocks blocks) {
    if (v.n == 2) {
        const int other = 1 - v.me;
        co_await v.send_receive(own, count, type, other, blocks.at(other), blocks.count(other), blocks.type(other), other);
    } else {
        RequestGroup group(v, v.n, v.n);
        for (int i = 1; i < v.n; ++i) {
            const int from = (v.me - i + v.n) % v.n;
            group.receive(blocks.at(from), blocks.count(from), blocks.type(from), from);
        }
        for (int i = 1; i < v.n; ++i) group.send(own, count, type, (v.me + i) % v.n);
        co_await group;
    }
    if (own != blocks.at(v.me))
        v.note(datatype::copy(type, count, own, blocks.type(v.me), blocks.count(v.me), blocks.at(v.me)));
    co_return v.error;
}

Task allgather_recursive_doubling(View v, Blocks blocks) {
    const int64_t count = blocks.count(0);
    const Datatype& type = blocks.type(0);
    for (int width = 1; width < v.n; width *= 2) {
        const int mine = v.me & ~(width - 1), other = mine ^ width, partner = v.me ^ width;
        co_await v.send_receive(blocks.at(mine), count * width, type, partner, blocks.at(other), count * width, type, partner);
    }
    co_return v.error;
}

Task allgather_bruck(View v, Blocks blocks) {
    // `room` holds the packed blocks received so far: this rank's own first, then those of the following ranks. Their number doubles in
    // every round.
    const uint64_t block = blocks.bytes(0);
    Temporary room(block * static_cast<uint64_t>(v.n));
    datatype::pack(blocks.type(0), blocks.count(0), blocks.at(v.me), 0, room.data(), block);
    for (int have = 1; have < v.n; have *= 2) {
        const int more = std::min(have, v.n - have);
        const auto bytes = static_cast<int64_t>(block * static_cast<uint64_t>(more));
        co_await v.send_receive(room.data(), bytes, byte_type(), (v.me - have + v.n) % v.n,
                                room.data() + block * static_cast<uint64_t>(have), bytes, byte_type(), (v.me + have) % v.n);
    }
    for (int i = 1; i < v.n; ++i) {
        const int rank = (v.me + i) % v.n;
        datatype::unpack(blocks.type(rank), blocks.count(rank), blocks.at(rank), 0,
                         room.data() + block * static_cast<uint64_t>(i), block);
    }
    co_return v.error;
}

}  // namespace starling::collective
