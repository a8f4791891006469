#include "mpi/common/buffer_overlap.h"

namespace starling::mpi {

namespace {

// Returns whether the blocks are one contiguous piece: they are uniform and have no gaps.
bool is_one_block(const collective::Blocks& blocks) { return blocks.uniform() && blocks.type(0).contiguous; }

TypedBuffer all(const collective::Blocks& blocks, int n) { return {blocks.at(0), blocks.count(0) * n, blocks.type(0)}; }

}  // namespace

bool overlap(const TypedBuffer& piece, const collective::Blocks& blocks, int n) {
    if (n == 0) return false;
    if (is_one_block(blocks)) return overlap(piece, all(blocks, n));
    for (int i = 0; i < n; ++i)
        if (overlap(piece, block(blocks, i))) return true;
    return false;
}

bool overlap(const collective::Blocks& a, const collective::Blocks& b, int n) {
    if (n == 0) return false;
    if (is_one_block(a) && is_one_block(b)) return overlap(all(a, n), all(b, n));
    for (int i = 0; i < n; ++i)
        if (overlap(block(a, i), block(b, i))) return true;
    return false;
}

}  // namespace starling::mpi
