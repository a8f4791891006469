// The tree by which the algorithms with multicast collect at rank 0.
#pragma once

#include <algorithm>

#include "collective/core/view.h"

namespace starling::collective {

/// A tree with kWide children per rank; rank r's parent is (r - 1) / kWide. A few hosts thus reach rank 0 in one step, for which each process
/// is scheduled once; with many hosts, the messages do not all queue at rank 0.
struct WideTree {
    static constexpr int kWide = 32;
    int parent, first, last;  ///< rank of the parent; children: ranks [first, last)
    explicit WideTree(const View& v)
        : parent((v.me - 1) / kWide), first(std::min(v.n, v.me * kWide + 1)), last(std::min(v.n, v.me * kWide + 1 + kWide)) {}
    int children() const { return last - first; }
};

}  // namespace starling::collective
