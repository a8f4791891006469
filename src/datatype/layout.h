// Layouts: the places of one element's bytes, in packed order, whatever their meaning. A layout is a small tree whose leaves are runs of
// equal blocks; types share the subtrees of their constituents.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "datatype/datatype.h"

namespace starling::datatype {

struct Node;

/// A member of a list: a block, or a subtree placed at `offset`.
struct LayoutBlock {
    int64_t offset;
    uint64_t start;    ///< packed bytes of the list before this piece
    const Node* node;  ///< nullptr: a block that ends where the next piece starts
};

struct Node {
    enum class Kind : uint8_t {
        empty,
        run,   ///< `count` blocks of `length` bytes, `stride` apart
        loop,  ///< `count` times `child`, `stride` apart
        list,  ///< `count` pieces, and one more that marks the end
    };
    Kind kind = Kind::empty;
    bool flat = false;   ///< list: all pieces are blocks
    bool even = false;   ///< list: all pieces are blocks of `length` bytes
    int64_t offset = 0;  ///< of the node's origin, from its parent's origin
    uint64_t size = 0;   ///< packed bytes of the node
    int64_t count = 0;
    int64_t stride = 0;
    uint64_t length = 0;
    const Node* child = nullptr;
    const LayoutBlock* pieces = nullptr;

    bool is_block() const { return kind == Kind::run && count == 1; }
    /// Returns whether repetitions of this list are worth copying piece by piece.
    bool short_list() const { return flat && count <= 16 && size <= 1024; }
};

struct Layout {
    Node root;
    // The nodes and lists of root's subtree, except those that belong to a constituent's layout.
    std::vector<std::unique_ptr<Node>> nodes;
    std::vector<std::vector<LayoutBlock>> lists;
};

/// Returns the layout of one element; built at the first call. Thread-safe.
const Layout& layout_of(const Datatype& type);
void free_layout(const Datatype& type);

/// Returns `count` copies of `node`, `stride` apart, in the simplest form. `keep` stores a copy of a node and returns its address.
template <class Keep>
Node repeated(Node node, int64_t count, int64_t stride, Keep&& keep) {
    if (count == 0 || node.kind == Node::Kind::empty) return Node{};
    if (count == 1) return node;
    const uint64_t size = node.size * static_cast<uint64_t>(count);
    if (node.kind == Node::Kind::run && node.count == 1) {
        const bool adjoining = stride == static_cast<int64_t>(node.length);
        node.size = size;
        if (adjoining) {
            node.length = size;
        } else {
            node.count = count;
            node.stride = stride;
        }
        return node;
    }
    int64_t whole;
    if ((node.kind == Node::Kind::run || node.kind == Node::Kind::loop) &&
        !__builtin_mul_overflow(node.count, node.stride, &whole) && whole == stride) {
        node.count *= count;
        node.size = size;
        return node;
    }
    Node loop;
    loop.kind = Node::Kind::loop;
    loop.size = size;
    loop.count = count;
    loop.stride = stride;
    loop.child = keep(node);
    return loop;
}

}  // namespace starling::datatype
