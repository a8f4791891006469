#include "file/view.h"

#include <algorithm>

#include "datatype/layout.h"

namespace starling::file {

namespace {

using datatype::Datatype;
using datatype::LayoutBlock;
using datatype::LayoutNode;

/// The first and last byte of a node's data, from its parent's origin; `last` is one past the end.
struct Span {
    int64_t first = 0, last = 0;
};

/// Computes the span of a node and returns whether its blocks are in increasing order.
bool is_ordered(const LayoutNode& node, Span& span) {
    switch (node.kind) {
        case LayoutNode::NodeKind::empty:
            return true;
        case LayoutNode::NodeKind::run:
        case LayoutNode::NodeKind::loop: {
            Span one{0, static_cast<int64_t>(node.length)};
            if (node.kind == LayoutNode::NodeKind::loop && !is_ordered(*node.child, one)) return false;
            span = {node.offset + one.first, node.offset + (node.count - 1) * node.stride + one.last};
            return node.count == 1 || node.stride >= one.last - one.first;
        }
        case LayoutNode::NodeKind::list: {
            bool any = false;
            for (const LayoutBlock* piece = node.blocks; piece != node.blocks + node.count; ++piece) {
                Span one{0, static_cast<int64_t>(piece[1].start - piece->start)};
                if (piece->node && !is_ordered(*piece->node, one)) return false;
                const Span placed{node.offset + piece->offset + one.first, node.offset + piece->offset + one.last};
                if (any && placed.first < span.last) return false;
                span = {any ? span.first : placed.first, placed.last};
                any = true;
            }
            return true;
        }
    }
    return true;
}

/// A stream position as an element of the filetype and a position in it.
struct Place {
    int64_t element, rest;
};
Place place_of(const Datatype& filetype, int64_t position) { return {position / filetype.size, position % filetype.size}; }

/// Returns the offset of stream byte `rest` from the beginning of an element.
int64_t offset_in_element(const Datatype& filetype, int64_t rest) {
    iovec block;
    datatype::blocks(filetype, 1, nullptr, static_cast<uint64_t>(rest), &block, 1);
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(block.iov_base));
}

/// Computes the offset in the file of stream byte `position`; returns false if it does not fit in 64 bits.
bool find_offset(const FileView& view, int64_t position, int64_t& offset) {
    const Place place = place_of(*view.filetype, position);
    return !__builtin_mul_overflow(place.element, view.filetype->extent, &offset) &&
           !__builtin_add_overflow(offset, view.displacement, &offset) &&
           !__builtin_add_overflow(offset, offset_in_element(*view.filetype, place.rest), &offset);
}

}  // namespace

void FileView::retain() const {
    for (const Datatype* type : {etype, filetype, given_etype, given_filetype}) datatype::retain(*type);
}

void FileView::release() const {
    for (const Datatype* type : {etype, filetype, given_etype, given_filetype}) datatype::release(*type);
}

FileView bytes_view() {
    const Datatype* byte = &datatype::predefined(MPI_BYTE);
    FileView view;
    view.etype = view.filetype = view.given_etype = view.given_filetype = byte;
    return view;
}

bool is_ordered(const Datatype& filetype) {
    if (filetype.size == 0) return true;
    Span span;
    return filetype.true_lb >= 0 && filetype.extent >= 0 && is_ordered(datatype::layout_of(filetype).root, span);
}

bool is_within_offsets(const FileView& view, int64_t position, int64_t bytes) {
    int64_t end, offset;
    if (position < 0 || __builtin_add_overflow(position, bytes, &end)) return false;
    if (bytes <= 0 || view.filetype->size == 0) return true;
    return find_offset(view, end - 1, offset) && offset < std::numeric_limits<int64_t>::max();
}

int64_t file_offset(const FileView& view, int64_t position) {
    if (view.contiguous()) return view.displacement + position;
    if (view.filetype->size == 0) return view.displacement;
    const Place place = place_of(*view.filetype, position);
    return view.displacement + place.element * view.filetype->extent + offset_in_element(*view.filetype, place.rest);
}

int64_t stream_position(const FileView& view, int64_t offset) {
    const Datatype& type = *view.filetype;
    if (offset <= view.displacement || type.size == 0) return 0;
    const int64_t into = offset - view.displacement;
    if (view.contiguous()) return into;
    // Elements before this one end before `offset`; the search is for the first byte of this element at or after it.
    const int64_t element = type.extent > 0 ? std::max<int64_t>(into - type.true_lb, 0) / type.extent : 0;
    const int64_t within = into - element * type.extent;
    int64_t low = 0, high = type.size;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (offset_in_element(type, middle) < within)
            low = middle + 1;
        else
            high = middle;
    }
    return element * type.size + low;
}

ExtentCursor::ExtentCursor(const FileView& view, int64_t position, int64_t bytes)
    : view_(view), position_(position), end_(view.filetype->size > 0 ? position + bytes : position) {}

void ExtentCursor::fill() {
    const Datatype& type = *view_.filetype;
    at_ = filled_ = 0;
    if (position_ >= end_) return;
    const Place place = place_of(type, position_);
    const int64_t elements = place_of(type, end_ - 1).element - place.element + 1;
    const auto origin = static_cast<uintptr_t>(view_.displacement + place.element * type.extent);
    filled_ = datatype::blocks(type, elements, reinterpret_cast<const void*>(origin), static_cast<uint64_t>(place.rest),
                               window_, kWindow);
}

Extent ExtentCursor::next(int64_t most) {
    if (at_ == filled_) fill();
    if (at_ == filled_ || most <= 0) return {};
    iovec& run = window_[at_];
    const int64_t bytes = std::min({static_cast<int64_t>(run.iov_len), end_ - position_, most});
    const Extent extent{static_cast<int64_t>(reinterpret_cast<uintptr_t>(run.iov_base)), bytes};
    run.iov_base = reinterpret_cast<void*>(extent.end());
    run.iov_len -= static_cast<size_t>(bytes);
    position_ += bytes;
    if (run.iov_len == 0 || position_ == end_) ++at_;
    return extent;
}

}  // namespace starling::file
