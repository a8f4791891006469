#include "collective/algorithms/recursive_halving.h"

namespace starling::collective {

std::vector<int64_t> equal_offsets(int64_t count, int pieces) {
    std::vector<int64_t> offsets(static_cast<size_t>(pieces) + 1);
    for (int i = 0; i < pieces; ++i) offsets[static_cast<size_t>(i)] = part_of(count, pieces, i).offset;
    offsets.back() = count;
    return offsets;
}

Task halve(View v, Halving halving, void* value, void* operand, const int64_t* offsets, const Datatype& type, const Op& op) {
    const int64_t count = offsets[halving.power];
    if (halving.core < 0) {
        co_await v.send(value, count, type, v.me + 1);
        co_return v.error;
    }
    if (v.me < 2 * halving.rest) {
        co_await v.receive(operand, count, type, v.me - 1);
        v.note(datatype::apply(op, operand, value, count, type));
    }
    int first = 0, last = halving.power;
    while (last - first > 1) {
        const int half = (last - first) / 2, middle = first + half;
        const bool keep_low = halving.core < middle;
        const int64_t out = keep_low ? offsets[middle] : offsets[first];
        const int64_t out_count = (keep_low ? offsets[last] : offsets[middle]) - out;
        const int64_t in = keep_low ? offsets[first] : offsets[middle];
        const int64_t in_count = (keep_low ? offsets[middle] : offsets[last]) - in;
        const int partner = halving.rank_of(halving.core ^ half);
        co_await v.send_receive(element(value, out, type), out_count, type, partner, element(operand, in, type), in_count, type,
                                partner);
        v.note(datatype::apply(op, element(operand, in, type), element(value, in, type), in_count, type));
        (keep_low ? last : first) = middle;
    }
    co_return v.error;
}

Task unhalve(View v, Halving halving, void* value, const int64_t* offsets, const Datatype& type) {
    const int64_t count = offsets[halving.power];
    if (halving.core < 0) {
        co_await v.receive(value, count, type, v.me + 1);
        co_return v.error;
    }
    for (int width = 1; width < halving.power; width *= 2) {
        const int mine = halving.core & ~(width - 1), other = mine ^ width;
        const int partner = halving.rank_of(halving.core ^ width);
        co_await v.send_receive(element(value, offsets[mine], type), offsets[mine + width] - offsets[mine], type, partner,
                                element(value, offsets[other], type), offsets[other + width] - offsets[other], type, partner);
    }
    if (v.me < 2 * halving.rest) co_await v.send(value, count, type, v.me - 1);
    co_return v.error;
}

}  // namespace starling::collective
