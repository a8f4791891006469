#include <vector>

#include "collective/algorithms.h"

namespace starling::collective {

namespace {

void copy_own_block(View& v, const Blocks& send, const Blocks& receive) {
    v.note(datatype::copy(send.type(v.me), send.count(v.me), send.at(v.me), receive.type(v.me), receive.count(v.me),
                          receive.at(v.me)));
}

}  // namespace

Task alltoall_linear(View v, Blocks send, Blocks receive) {
    RequestGroup group(v, v.n, v.n);
    for (int i = 1; i < v.n; ++i) {
        const int from = (v.me - i + v.n) % v.n;
        group.receive(receive.at(from), receive.count(from), receive.type(from), from);
    }
    for (int i = 1; i < v.n; ++i) {
        const int to = (v.me + i) % v.n;
        group.send(send.at(to), send.count(to), send.type(to), to);
    }
    copy_own_block(v, send, receive);
    co_await group;
    co_return v.error;
}

Task alltoall_pairwise(View v, Blocks send, Blocks receive) {
    copy_own_block(v, send, receive);
    for (int i = 1; i < v.n; ++i) {
        const int to = (v.me + i) % v.n, from = (v.me - i + v.n) % v.n;
        co_await v.send_receive(send.at(to), send.count(to), send.type(to), to, receive.at(from), receive.count(from),
                                receive.type(from), from);
    }
    co_return v.error;
}

Task alltoall_bruck(View v, Blocks send, Blocks receive) {
    // room[i] is the block that still has to travel i ranks to the right. In the round of distance d, all blocks with bit d set in i travel
    // d ranks.
    const uint64_t block = send.bytes(0);
    const auto n = static_cast<uint64_t>(v.n);
    Temporary room(block * n), out(block * ((n + 1) / 2)), in(block * ((n + 1) / 2));
    for (int i = 0; i < v.n; ++i) {
        const int to = (v.me + i) % v.n;
        datatype::pack(send.type(to), send.count(to), send.at(to), 0, room.data() + block * static_cast<uint64_t>(i), block);
    }
    for (int distance = 1; distance < v.n; distance *= 2) {
        const auto each = [&](auto&& move) {
            uint64_t position = 0;
            for (int i = distance; i < v.n; ++i) {
                if (!(i & distance)) continue;
                move(room.data() + block * static_cast<uint64_t>(i), position);
                position += block;
            }
            return position;
        };
        const uint64_t bytes = each([&](std::byte* place, uint64_t at) { std::memcpy(out.data() + at, place, block); });
        co_await v.send_receive(out.data(), static_cast<int64_t>(bytes), byte_type(), (v.me + distance) % v.n, in.data(),
                                static_cast<int64_t>(bytes), byte_type(), (v.me - distance + v.n) % v.n);
        each([&](std::byte* place, uint64_t at) { std::memcpy(place, in.data() + at, block); });
    }
    for (int i = 0; i < v.n; ++i) {
        const int from = (v.me - i + v.n) % v.n;
        datatype::unpack(receive.type(from), receive.count(from), receive.at(from), 0,
                         room.data() + block * static_cast<uint64_t>(i), block);
    }
    co_return v.error;
}

Task alltoall_in_place(View v, Blocks blocks) {
    std::vector<uint64_t> offsets(static_cast<size_t>(v.n) + 1);
    for (int i = 0; i < v.n; ++i) {
        const auto at = static_cast<size_t>(i);
        offsets[at + 1] = offsets[at] + (i == v.me ? 0 : blocks.bytes(i));
    }
    Temporary room(offsets.back());
    const auto place = [&](int i) { return room.data() + offsets[static_cast<size_t>(i)]; };
    for (int i = 0; i < v.n; ++i)
        if (i != v.me) datatype::pack(blocks.type(i), blocks.count(i), blocks.at(i), 0, place(i), blocks.bytes(i));
    for (int i = 1; i < v.n; ++i) {
        const int to = (v.me + i) % v.n, from = (v.me - i + v.n) % v.n;
        co_await v.send_receive(place(to), static_cast<int64_t>(blocks.bytes(to)), byte_type(), to, blocks.at(from),
                                blocks.count(from), blocks.type(from), from);
    }
    co_return v.error;
}

}  // namespace starling::collective
