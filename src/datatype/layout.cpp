#include "datatype/layout.h"

#include <atomic>

#include "datatype/recipe.h"

namespace starling::datatype {

namespace {

// Maximum number of blocks of a list or run whose blocks are copied into an enclosing list, instead of becoming a subtree.
constexpr int64_t kInline = 8;

class Compiler {
  public:
    Compiler(Layout& layout) : layout_(layout) {}

    void add(const RecipePart& part) {
        if (part.count == 0 || part.block == 0 || part.type->size == 0) return;
        const auto keep = [this](const LayoutNode& node) { return this->keep(node); };
        LayoutNode node = repeated(layout_of(*part.type).root, part.block, part.type->extent, keep);
        node = repeated(node, part.count, part.stride, keep);
        node.offset += part.offset;
        append(node, 0);
    }

    LayoutNode finish() {
        if (blocks_.empty()) return LayoutNode{};
        if (blocks_.size() == 1) {
            LayoutNode node;
            if (!blocks_[0].node) return block(blocks_[0].offset, size_);
            node = *blocks_[0].node;
            node.offset += blocks_[0].offset;
            return node;
        }
        blocks_.push_back({0, size_, nullptr});
        return list();
    }

  private:
    static LayoutNode block(int64_t offset, uint64_t length) {
        LayoutNode node;
        node.kind = LayoutNode::NodeKind::run;
        node.offset = offset;
        node.size = node.length = length;
        node.count = 1;
        return node;
    }

    const LayoutNode* keep(const LayoutNode& node) {
        layout_.nodes.push_back(std::make_unique<LayoutNode>(node));
        return layout_.nodes.back().get();
    }

    void append(const LayoutNode& node, int64_t origin) {
        const int64_t at = origin + node.offset;
        if (node.kind == LayoutNode::NodeKind::run && node.count <= kInline) {
            for (int64_t i = 0; i < node.count; ++i) append_block(at + i * node.stride, node.length);
        } else if (node.kind == LayoutNode::NodeKind::list && node.count <= kInline) {
            for (const LayoutBlock* p = node.blocks; p != node.blocks + node.count; ++p) {
                if (p->node)
                    append(*p->node, at + p->offset);
                else
                    append_block(at + p->offset, p[1].start - p->start);
            }
        } else {
            blocks_.push_back({origin, size_, keep(node)});
            size_ += node.size;
        }
    }

    void append_block(int64_t offset, uint64_t length) {
        if (!blocks_.empty()) {
            const LayoutBlock& last = blocks_.back();
            if (!last.node && last.offset + static_cast<int64_t>(size_ - last.start) == offset) {
                size_ += length;
                return;
            }
        }
        blocks_.push_back({offset, size_, nullptr});
        size_ += length;
    }

    // Returns a list node of the collected pieces (at least two), or a run if they are equal blocks at equal distances.
    LayoutNode list() {
        const int64_t count = static_cast<int64_t>(blocks_.size()) - 1;
        const uint64_t length = blocks_[1].start;
        const int64_t stride = blocks_[1].offset - blocks_[0].offset;
        bool flat = true, even = true, spaced = true;
        for (int64_t i = 0; i < count; ++i) {
            const LayoutBlock& piece = blocks_[static_cast<size_t>(i)];
            flat = flat && !piece.node;
            even = even && !piece.node && blocks_[static_cast<size_t>(i + 1)].start - piece.start == length;
            spaced = spaced && (i == 0 || piece.offset - blocks_[static_cast<size_t>(i - 1)].offset == stride);
        }
        LayoutNode node;
        node.size = size_;
        node.count = count;
        if (even) node.length = length;
        if (even && spaced) {
            node.kind = LayoutNode::NodeKind::run;
            node.offset = blocks_[0].offset;
            node.stride = stride;
            return node;
        }
        node.kind = LayoutNode::NodeKind::list;
        node.flat = flat;
        node.even = even;
        blocks_.shrink_to_fit();
        layout_.lists.push_back(static_cast<std::vector<LayoutBlock>&&>(blocks_));
        node.blocks = layout_.lists.back().data();
        return node;
    }

    Layout& layout_;
    std::vector<LayoutBlock> blocks_;
    uint64_t size_ = 0;
};

// Adds the data of a named predefined type; for pairs, the two blocks without the gap between them.
void compile_named(Compiler& compiler, const Datatype& type) {
    const Datatype& byte = predefined(MPI_BYTE);
    if (type.one_block) return compiler.add({0, 1, 0, type.size, &byte});
    const int64_t index_bytes = type.true_extent - type.index_offset;
    compiler.add({0, 1, 0, type.size - index_bytes, &byte});
    compiler.add({type.index_offset, 1, 0, index_bytes, &byte});
}

const Layout* compile(const Datatype& type) {
    auto layout = std::make_unique<Layout>();
    if (&type == &predefined(MPI_BYTE)) {
        LayoutNode& root = layout->root;
        root.kind = LayoutNode::NodeKind::run;
        root.size = root.length = 1;
        root.count = 1;
        return layout.release();
    }
    Compiler compiler(*layout);
    if (type.recipe)
        for_each_part(*type.recipe, [&](const RecipePart& part) { compiler.add(part); });
    else
        compile_named(compiler, type);
    layout->root = compiler.finish();
    return layout.release();
}

}  // namespace

// Two threads may both build the layout of a predefined type at its first use; only one result is kept.
const Layout& layout_of(const Datatype& type) {
    const std::atomic_ref place(type.layout);
    if (const Layout* made = place.load(std::memory_order_acquire)) return *made;
    const Layout* mine = compile(type);
    const Layout* theirs = nullptr;
    if (place.compare_exchange_strong(theirs, mine)) return *mine;
    delete mine;
    return *theirs;
}

void free_layout(const Datatype& type) {
    delete type.layout;
    type.layout = nullptr;
}

}  // namespace starling::datatype
