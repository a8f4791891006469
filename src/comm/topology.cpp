#include "comm/topology.h"

#include <algorithm>
#include <cstdint>

namespace starling::comm {

namespace {

// Writes `nodes` as a product of out.size() factors, none above `limit`, in falling order, the largest as
// small as possible, then the second, and so on. `divisors`: those of the number it started with, rising.
bool factorize(int nodes, int limit, std::span<int> out, const std::vector<int>& divisors) {
    if (out.empty()) return nodes == 1;
    for (const int divisor : divisors) {
        if (divisor > limit) return false;
        if (nodes % divisor != 0) continue;
        // The others can't be larger: this one must reach the root.
        int64_t reach = 1;
        for (size_t i = 0; i < out.size() && reach < nodes; ++i) reach *= divisor;
        if (reach < nodes) continue;
        out[0] = divisor;
        if (factorize(nodes / divisor, divisor, out.subspan(1), divisors)) return true;
    }
    return false;
}

std::vector<int> divisors_of(int n) {
    std::vector<int> low, high;
    for (int i = 1; int64_t{i} * i <= n; ++i) {
        if (n % i != 0) continue;
        low.push_back(i);
        if (i != n / i) high.push_back(n / i);
    }
    low.insert(low.end(), high.rbegin(), high.rend());
    return low;
}

}  // namespace

void CartTopology::coordinates(int rank, int* coords) const {
    for (size_t i = dims.size(); i-- > 0;) {
        coords[i] = rank % dims[i];
        rank /= dims[i];
    }
}

int CartTopology::rank_at(std::span<const int> coords) const {
    int rank = 0;
    for (size_t i = 0; i < dims.size(); ++i) {
        int c = coords[i];
        if (c < 0 || c >= dims[i]) {
            if (!periodic[i]) return -1;
            c %= dims[i];
            if (c < 0) c += dims[i];
        }
        rank = rank * dims[i] + c;
    }
    return rank;
}

int CartTopology::neighbor(int rank, int dimension, int64_t distance) const {
    const auto d = static_cast<size_t>(dimension);
    std::vector<int> coords(dims.size());
    coordinates(rank, coords.data());
    const int64_t moved = coords[d] + distance;
    if ((moved < 0 || moved >= dims[d]) && !periodic[d]) return MPI_PROC_NULL;
    coords[d] = static_cast<int>((moved % dims[d] + dims[d]) % dims[d]);
    return rank_at(coords);
}

std::span<const int> GraphTopology::neighbors(int rank) const {
    const auto r = static_cast<size_t>(rank);
    const int begin = r == 0 ? 0 : index[r - 1];
    return std::span(edges).subspan(static_cast<size_t>(begin), static_cast<size_t>(index[r] - begin));
}

bool balance(int nodes, std::span<int> dims) {
    int64_t fixed = 1;
    std::vector<int> filled;
    for (const int dim : dims) {
        if (dim == 0)
            filled.push_back(0);
        else if ((fixed *= dim) > nodes)
            return false;
    }
    if (nodes % fixed != 0) return false;
    const int rest = nodes / static_cast<int>(fixed);
    if (filled.empty()) return rest == 1;
    // A prime and ones are always a solution, so this finds one.
    factorize(rest, rest, filled, divisors_of(rest));
    auto next = filled.begin();
    for (int& dim : dims)
        if (dim == 0) dim = *next++;
    return true;
}

}  // namespace starling::comm
