// Walks a layout: calls a sink for each run of equal blocks, in packed order, from any position on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "datatype/layout.h"

namespace starling::datatype {

// The interface of a sink:
//
//     // one block
//     bool block(std::byte* at, uint64_t length);
//     // equal blocks at equal distances
//     bool run(std::byte* at, int64_t count, int64_t stride, uint64_t length);
//     // equal blocks of a list
//     bool even(std::byte* origin, const LayoutBlock* first, int64_t count, uint64_t length);
//     // a short list of blocks, repeated
//     bool grid(std::byte* origin, int64_t count, int64_t stride, const LayoutNode& list);
//
// Each returns false to end the walk. A sink that takes only a part of the offered bytes must return false.

template <class Sink>
bool walk_run(std::byte* at, int64_t count, int64_t stride, uint64_t length, uint64_t skip, Sink& sink) {
    if (skip) {
        const uint64_t first = skip / length, into = skip % length;
        at += static_cast<int64_t>(first) * stride;
        count -= static_cast<int64_t>(first);
        if (into) {
            if (!sink.block(at + into, length - into)) return false;
            at += stride;
            --count;
        }
    }
    if (count == 1) return sink.block(at, length);
    return count == 0 || sink.run(at, count, stride, length);
}

/// Returns the piece that holds stream position `skip` of a list.
inline const LayoutBlock* find_block(const LayoutNode& list, uint64_t skip) {
    if (skip == 0) return list.blocks;
    if (list.even) return list.blocks + skip / list.length;
    const LayoutBlock* end = list.blocks + list.count;
    return std::upper_bound(list.blocks, end, skip, [](uint64_t s, const LayoutBlock& p) { return s < p.start; }) - 1;
}

/// Walks a node from position `skip` on, which must be less than the node's size.
template <class Sink>
bool walk(const LayoutNode& node, std::byte* origin, uint64_t skip, Sink& sink) {
    origin += node.offset;
    switch (node.kind) {
        case LayoutNode::NodeKind::run:
            return walk_run(origin, node.count, node.stride, node.length, skip, sink);
        case LayoutNode::NodeKind::list: {
            const LayoutBlock* piece = find_block(node, skip);
            const LayoutBlock* const end = node.blocks + node.count;
            skip -= piece->start;
            for (; piece != end; ++piece, skip = 0) {
                std::byte* at = origin + piece->offset;
                if (!piece->node) {
                    if (node.even && skip == 0) return sink.even(origin, piece, end - piece, node.length);
                    if (!sink.block(at + skip, piece[1].start - piece->start - skip)) return false;
                } else if (!walk(*piece->node, at, skip, sink)) {
                    return false;
                }
            }
            return true;
        }
        case LayoutNode::NodeKind::loop: {
            const uint64_t done = skip / node.child->size;
            skip -= done * node.child->size;
            int64_t left = node.count - static_cast<int64_t>(done);
            std::byte* at = origin + static_cast<int64_t>(done) * node.stride;
            for (; left > 0; --left, at += node.stride, skip = 0) {
                if (skip == 0 && node.child->short_list())
                    return sink.grid(at + node.child->offset, left, node.stride, *node.child);
                if (!walk(*node.child, at, skip, sink)) return false;
            }
            return true;
        }
        case LayoutNode::NodeKind::empty:
            return true;
    }
    return true;
}

/// Walks the stream of `count` elements from position `skip` on, which may be its end.
template <class Sink>
void walk_elements(const Datatype& type, int64_t count, std::byte* buffer, uint64_t skip, Sink& sink) {
    if (type.size == 0 || skip >= packed_size(type, count)) return;
    const LayoutNode& root = layout_of(type).root;
    const LayoutNode all = repeated(root, count, type.extent, [&](const LayoutNode&) { return &root; });
    walk(all, buffer, skip, sink);
}

}  // namespace starling::datatype
