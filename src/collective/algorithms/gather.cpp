#include <algorithm>

#include "collective/algorithms.h"

namespace starling::collective {

namespace {

/// This process's position in a binomial tree over ranks counted from the root. The ranks of each subtree are consecutive.
struct Subtree {
    int relative, parent_distance, size;
    Subtree(const View& v, int root) : relative((v.me - root + v.n) % v.n), parent_distance(1) {
        while (parent_distance < v.n && !(relative & parent_distance)) parent_distance *= 2;
        size = std::min(parent_distance, v.n - relative);
    }
};

int children_of(const Subtree& tree, int n) {
    int children = 0;
    for (int d = 1; d < tree.parent_distance; d *= 2) children += tree.relative + d < n;
    return children;
}

}  // namespace

Task gather_linear(View v, const void* send, int64_t count, const Datatype& type, Blocks receive, int root) {
    if (v.me != root) {
        co_await v.send(send, count, type, root);
        co_return v.error;
    }
    RequestGroup receives(v, 0, v.n);
    for (int i = 1; i < v.n; ++i) {
        const int from = (root + i) % v.n;
        receives.receive(receive.at(from), receive.count(from), receive.type(from), from);
    }
    if (send != MPI_IN_PLACE)
        v.note(datatype::copy(type, count, send, receive.type(root), receive.count(root), receive.at(root)));
    co_await receives;
    co_return v.error;
}

Task gather_binomial(View v, const void* send, int64_t count, const Datatype& type, Blocks receive, int root) {
    const Subtree tree(v, root);
    if (v.me != root && tree.size == 1) {
        co_await v.send(send, count, type, (tree.relative - tree.parent_distance + v.n + root) % v.n);
        co_return v.error;
    }
    const bool at_root = v.me == root;
    const uint64_t block = at_root ? receive.bytes(root) : datatype::packed_size(type, count);
    Temporary room(block * static_cast<uint64_t>(tree.size));
    RequestGroup receives(v, 0, children_of(tree, v.n));
    for (int d = 1; d < tree.parent_distance && tree.relative + d < v.n; d *= 2) {
        const int blocks = std::min(d, v.n - tree.relative - d);
        receives.receive(room.data() + static_cast<uint64_t>(d) * block,
                         static_cast<int64_t>(static_cast<uint64_t>(blocks) * block), byte_type(),
                         (tree.relative + d + root) % v.n);
    }
    if (!at_root) datatype::pack(type, count, send, 0, room.data(), block);
    co_await receives;
    if (!at_root) {
        co_await v.send(room.data(), static_cast<int64_t>(block * static_cast<uint64_t>(tree.size)), byte_type(),
                        (tree.relative - tree.parent_distance + v.n + root) % v.n);
        co_return v.error;
    }
    for (int i = 1; i < v.n; ++i) {
        const int rank = (root + i) % v.n;
        datatype::unpack(receive.type(rank), receive.count(rank), receive.at(rank), 0,
                         room.data() + static_cast<uint64_t>(i) * block, block);
    }
    if (send != MPI_IN_PLACE)
        v.note(datatype::copy(type, count, send, receive.type(root), receive.count(root), receive.at(root)));
    co_return v.error;
}

Task scatter_linear(View v, Blocks send, void* receive, int64_t count, const Datatype& type, int root) {
    if (v.me != root) {
        co_await v.receive(receive, count, type, root);
        co_return v.error;
    }
    RequestGroup sends(v, v.n, 0);
    for (int i = 1; i < v.n; ++i) {
        const int to = (root + i) % v.n;
        sends.send(send.at(to), send.count(to), send.type(to), to);
    }
    if (receive != MPI_IN_PLACE) v.note(datatype::copy(send.type(root), send.count(root), send.at(root), type, count, receive));
    co_await sends;
    co_return v.error;
}

Task scatter_binomial(View v, Blocks send, void* receive, int64_t count, const Datatype& type, int root) {
    const Subtree tree(v, root);
    const int parent = (tree.relative - tree.parent_distance + 2 * v.n + root) % v.n;
    if (v.me != root && tree.size == 1) {
        co_await v.receive(receive, count, type, parent);
        co_return v.error;
    }
    const bool at_root = v.me == root;
    const uint64_t block = at_root ? send.bytes(root) : datatype::packed_size(type, count);
    Temporary room(block * static_cast<uint64_t>(tree.size));
    RequestGroup sends(v, children_of(tree, v.n), 0);
    if (at_root) {
        for (int i = 1; i < v.n; ++i) {
            const int rank = (root + i) % v.n;
            datatype::pack(send.type(rank), send.count(rank), send.at(rank), 0, room.data() + static_cast<uint64_t>(i) * block,
                           block);
        }
    } else {
        co_await v.receive(room.data(), static_cast<int64_t>(block * static_cast<uint64_t>(tree.size)), byte_type(), parent);
    }
    for (int d = tree.parent_distance / 2; d > 0; d /= 2) {
        if (tree.relative + d >= v.n) continue;
        const int blocks = std::min(d, v.n - tree.relative - d);
        sends.send(room.data() + static_cast<uint64_t>(d) * block, static_cast<int64_t>(static_cast<uint64_t>(blocks) * block),
                   byte_type(), (tree.relative + d + root) % v.n);
    }
    if (!at_root)
        datatype::unpack(type, count, receive, 0, room.data(), block);
    else if (receive != MPI_IN_PLACE)
        v.note(datatype::copy(send.type(root), send.count(root), send.at(root), type, count, receive));
    co_await sends;
    co_return v.error;
}

}  // namespace starling::collective
