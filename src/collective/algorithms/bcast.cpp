#include <algorithm>

#include "collective/algorithms.h"
#include "collective/core/binomial.h"

namespace starling::collective {

namespace {

/// Bytes per message of the pipelined chain.
constexpr uint64_t kChainSegment = 64 * 1024;

/// The division of a buffer among the ranks, in whole cache lines, so that no two ranks write to the same line.
struct ByteShares {
    uint64_t total, each;
    ByteShares(uint64_t bytes, int n) : total(bytes) {
        const uint64_t even = (bytes + static_cast<uint64_t>(n) - 1) / static_cast<uint64_t>(n);
        each = (even + 63) / 64 * 64;
    }
    uint64_t begin(int i) const { return std::min(total, each * static_cast<uint64_t>(i)); }
    int64_t bytes(int first, int last) const { return static_cast<int64_t>(begin(last) - begin(first)); }
};

/// Scatters along a binomial tree: sends every child its share and those of its subtree.
Task scatter_shares(View v, std::byte* data, ByteShares shares, int root) {
    const Binomial tree(v, root);
    const int relative = tree.relative;
    if (!tree.is_root()) {
        const int last = std::min(relative + tree.distance, v.n);
        co_await v.receive(data + shares.begin(relative), shares.bytes(relative, last), byte_type(), tree.parent());
    }
    for (int distance = tree.distance / 2; distance > 0; distance /= 2) {
        const int child = relative + distance;
        if (child >= v.n) continue;
        const int last = std::min(child + distance, v.n);
        co_await v.send(data + shares.begin(child), shares.bytes(child, last), byte_type(), (child + root) % v.n);
    }
    co_return v.error;
}

}  // namespace

Task bcast_binomial(View v, void* buffer, int64_t count, const Datatype& type, int root) {
    const Binomial tree(v, root);
    if (!tree.is_root()) co_await v.receive(buffer, count, type, tree.parent());
    if (tree.children() == 0) co_return v.error;
    // Start all sends: eager messages complete at once, and all children fetch long ones at the same time.
    RequestGroup sends(v, tree.children(), 0);
    tree.each_child([&](int child) { sends.send(buffer, count, type, child); });
    co_await sends;
    co_return v.error;
}

Task bcast_linear(View v, void* buffer, int64_t count, const Datatype& type, int root) {
    if (v.me != root) {
        co_await v.receive(buffer, count, type, root);
        co_return v.error;
    }
    RequestGroup sends(v, v.n, 0);
    for (int i = 1; i < v.n; ++i) sends.send(buffer, count, type, (root + i) % v.n);
    co_await sends;
    co_return v.error;
}

Task bcast_scatter_allgather(View v, void* buffer, int64_t count, const Datatype& type, int root) {
    PackedBuffer packed(buffer, count, type);
    if (v.me == root) packed.load();
    const ByteShares shares(packed.bytes(), v.n);
    v.note(co_await scatter_shares(v, packed.data(), shares, root));

    // Ring allgather: in step i each rank forwards to its right neighbor the share that it received in step i - 1.
    const int relative = (v.me - root + v.n) % v.n;
    const int right = (v.me + 1) % v.n, left = (v.me - 1 + v.n) % v.n;
    for (int step = 0; step < v.n - 1; ++step) {
        const int out = (relative - step + v.n) % v.n, in = (relative - step - 1 + 2 * v.n) % v.n;
        co_await v.send_receive(packed.data() + shares.begin(out), shares.bytes(out, out + 1), byte_type(), right,
                                packed.data() + shares.begin(in), shares.bytes(in, in + 1), byte_type(), left);
    }
    if (v.me != root) packed.store();
    co_return v.error;
}

Task bcast_chain(View v, void* buffer, int64_t count, const Datatype& type, int root) {
    PackedBuffer packed(buffer, count, type);
    if (v.me == root) packed.load();
    const int relative = (v.me - root + v.n) % v.n;
    const bool has_left = relative != 0, has_right = relative != v.n - 1;
    const int right = (v.me + 1) % v.n, left = (v.me - 1 + v.n) % v.n;
    const uint64_t segments = (packed.bytes() + kChainSegment - 1) / kChainSegment;
    const auto bytes = [&packed](uint64_t segment) {
        return static_cast<int64_t>(std::min(kChainSegment, packed.bytes() - segment * kChainSegment));
    };

    // Pipeline: the rank sends segment i to its right neighbor while it receives segment i + 1 from the left.
    if (has_left && segments) co_await v.receive(packed.data(), bytes(0), byte_type(), left);
    for (uint64_t i = 0; i < segments; ++i) {
        std::byte* segment = packed.data() + i * kChainSegment;
        const bool more = has_left && i + 1 < segments;
        if (more && has_right)
            co_await v.send_receive(segment, bytes(i), byte_type(), right, segment + kChainSegment, bytes(i + 1), byte_type(),
                                    left);
        else if (more)
            co_await v.receive(segment + kChainSegment, bytes(i + 1), byte_type(), left);
        else if (has_right)
            co_await v.send(segment, bytes(i), byte_type(), right);
    }
    if (v.me != root) packed.store();
    co_return v.error;
}

}  // namespace starling::collective
