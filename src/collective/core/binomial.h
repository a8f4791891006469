// Binomial trees: a process that has the data sends it to the root of the farther half of its subtree, then repeats this with the nearer
// half.
#pragma once

#include "collective/core/view.h"

namespace starling::collective {

/// The position of this process in the binomial tree of a view's ranks, counted from the root.
struct Binomial {
    int n, root, relative;
    int distance = 1;  ///< distance to the parent; n or more at the root

    Binomial(const View& v, int root_rank) : n(v.n), root(root_rank), relative((v.me - root_rank + v.n) % v.n) {
        while (distance < n && !(relative & distance)) distance *= 2;
    }
    bool is_root() const { return relative == 0; }
    int parent() const { return (relative - distance + root) % n; }
    int children() const {
        int count = 0;
        for (int d = distance / 2; d > 0; d /= 2) count += relative + d < n;
        return count;
    }
    /// Visits the children's ranks, those with the largest subtrees first.
    template <class Visit>
    void each_child(Visit visit) const {
        for (int d = distance / 2; d > 0; d /= 2)
            if (relative + d < n) visit((relative + d + root) % n);
    }
};

}  // namespace starling::collective
