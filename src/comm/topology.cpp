#include "comm/topology.h"

#include <algorithm>
#include <cstdint>

namespace starling::comm {

namespace {

// Writes `nodes` as a product of out.size() factors between `floor` and `limit`, in descending order. It minimizes the largest factor, then
// the second, and so on. `divisors` are the divisors of the initial number, ascending.
bool factorize(int nodes, int floor, int limit, std::span<int> out, const std::vector<int>& divisors) {
    if (out.empty()) return nodes == 1;
    for (auto at = std::lower_bound(divisors.begin(), divisors.end(), floor); at != divisors.end(); ++at) {
        const int divisor = *at;
        if (divisor > limit) return false;
        if (nodes % divisor != 0) continue;
        // The other factors lie between `floor` and `divisor`: their product must be able to reach `nodes`, and must not exceed it.
        int64_t reach = divisor, least = divisor;
        for (size_t i = 1; i < out.size(); ++i) {
            if (reach < nodes) reach *= divisor;
            if (least <= nodes) least *= floor;
        }
        if (least > nodes) return false;
        if (reach < nodes) continue;
        out[0] = divisor;
        if (factorize(nodes / divisor, floor, divisor, out.subspan(1), divisors)) return true;
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

// Writes `nodes` as a product whose largest and smallest factors differ least. Among several such products it takes the one with the largest
// smallest factor. Other implementations also read "as close to each other as possible" (MPI 5.0 section 8.5.2) in this way.
std::vector<int> most_even(int nodes, size_t count) {
    const std::vector<int> divisors = divisors_of(nodes);
    std::vector<int> best, tried(count);
    for (auto smallest = divisors.rbegin(); smallest != divisors.rend(); ++smallest) {
        const int64_t beyond = best.empty() ? nodes : *smallest + int64_t{best.front()} - best.back() - 1;
        const auto limit = static_cast<int>(std::min<int64_t>(beyond, nodes));
        tried.back() = *smallest;
        if (factorize(nodes / *smallest, *smallest, limit, std::span(tried).first(count - 1), divisors)) best = tried;
    }
    return best;
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
    filled = most_even(rest, filled.size());
    auto next = filled.begin();
    for (int& dim : dims)
        if (dim == 0) dim = *next++;
    return true;
}

}  // namespace starling::comm
