#include "rma/flatten.h"

#include <algorithm>

namespace starling::rma {

namespace {

/// Offset bias: offsets are used as addresses while a type is traversed, so this is added to keep them from being null.
constexpr uint64_t kBias = uint64_t{1} << 60;

/// Returns the contiguous block of a remote block that begins at packed position `from`, as an offset and a length.
BlockRun block_at(const RemoteBlock& there, uint64_t from) {
    iovec block{};
    if (!datatype::blocks(*there.type, there.count, reinterpret_cast<void*>(kBias + there.offset), from, &block, 1)) return {};
    return {reinterpret_cast<uint64_t>(block.iov_base) - kBias, block.iov_len};
}

}  // namespace

bool next_run(const RemoteBlock& there, const Datatype* element, uint64_t from, uint64_t room, BlockRun& run) {
    const uint64_t size = element ? static_cast<uint64_t>(element->size) : 1;
    const uint64_t whole = room - room % size;
    if (whole == 0) return false;
    if (!element || element->contiguous) {
        run = block_at(there, from);
        run.bytes = std::min(run.bytes, whole);
    } else if (there.type == element) {
        const uint64_t left = there.bytes() - from;
        run = {there.offset + from / size * static_cast<uint64_t>(element->extent), std::min(left, whole)};
    } else {
        run = {block_at(there, from).offset, size};
    }
    return run.bytes > 0;
}

}  // namespace starling::rma
