// Layouts: the locations of one element's bytes in memory, in packed order, without their types. A layout is a small tree whose leaves are
// runs of equal blocks; types share the subtrees of their constituents.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "datatype/datatype.h"

namespace starling::datatype {

struct LayoutNode;

/// A member of a list: a block, or a subtree placed at `offset`.
struct LayoutBlock {
    int64_t offset;
    uint64_t start;          ///< number of the list's packed bytes before this piece
    const LayoutNode* node;  ///< subtree; nullptr: a block that ends where the next piece starts
};

struct LayoutNode {
    enum class NodeKind : uint8_t {
        empty,
        run,   ///< `count` blocks of `length` bytes, `stride` apart
        loop,  ///< `count` repetitions of `child`, `stride` bytes apart
        list,  ///< `count` pieces, followed by an entry that marks the end of the last
    };
    NodeKind kind = NodeKind::empty;
    bool flat = false;   ///< whether all pieces of a list are blocks
    bool even = false;   ///< whether all pieces of a list are blocks of `length` bytes
    int64_t offset = 0;  ///< offset of the node's origin from its parent's origin
    uint64_t size = 0;   ///< packed bytes of the node
    int64_t count = 0;
    int64_t stride = 0;
    uint64_t length = 0;
    const LayoutNode* child = nullptr;
    const LayoutBlock* blocks = nullptr;

    bool is_block() const { return kind == NodeKind::run && count == 1; }
    /// Returns whether repetitions of this list should be copied piece by piece (the first piece of all repetitions, then the second),
    /// because it is short.
    bool short_list() const { return flat && count <= 16 && size <= 1024; }
};

struct Layout {
    LayoutNode root;
    // The nodes and lists of root's subtree, except those that belong to a constituent's layout.
    std::vector<std::unique_ptr<LayoutNode>> nodes;
    std::vector<std::vector<LayoutBlock>> lists;
};

/// Returns the layout of one element; built at the first call. Thread-safe.
const Layout& layout_of(const Datatype& type);
void free_layout(const Datatype& type);

/// Returns `count` copies of `node`, `stride` apart, in the simplest form. `keep` stores a copy of a node and returns its address.
template <class Keep>
LayoutNode repeated(LayoutNode node, int64_t count, int64_t stride, Keep&& keep) {
    if (count == 0 || node.kind == LayoutNode::NodeKind::empty) return LayoutNode{};
    if (count == 1) return node;
    const uint64_t size = node.size * static_cast<uint64_t>(count);
    if (node.kind == LayoutNode::NodeKind::run && node.count == 1) {
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
    if ((node.kind == LayoutNode::NodeKind::run || node.kind == LayoutNode::NodeKind::loop) &&
        !__builtin_mul_overflow(node.count, node.stride, &whole) && whole == stride) {
        node.count *= count;
        node.size = size;
        return node;
    }
    LayoutNode loop;
    loop.kind = LayoutNode::NodeKind::loop;
    loop.size = size;
    loop.count = count;
    loop.stride = stride;
    loop.child = keep(node);
    return loop;
}

}  // namespace starling::datatype
