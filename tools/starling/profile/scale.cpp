#include "scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <unordered_map>

namespace starling::analysis {

namespace {

using Coordinates = std::array<int32_t, 3>;  ///< coordinates of a place in a grid; unused dimensions are 0
using Grid = std::vector<uint32_t>;

constexpr double kExplained = 0.9;   ///< minimum share of the messages that a grid must explain
constexpr double kEverywhere = 0.5;  ///< minimum share: ranks with a partner at an offset, of the ranks that could have one
constexpr double kSparse = 0.6;      ///< maximum share of the ranks that are partners: any grid fits all-to-all traffic
constexpr int32_t kReach = 2;        ///< maximum offset in each dimension of a grid
constexpr int64_t kNear = 8;         ///< maximum distance of near partners on a curve

Coordinates place_of(uint32_t rank, const Grid& grid) {
    Coordinates out{};
    for (size_t i = 0; i < grid.size(); ++i) {
        out[i] = static_cast<int32_t>(rank % grid[i]);
        rank /= grid[i];
    }
    return out;
}

/// Returns the offset between two places; where the grid wraps around, the shorter way.
Coordinates offset_of(const Coordinates& from, const Coordinates& to, const Grid& grid) {
    Coordinates out{};
    for (size_t i = 0; i < grid.size(); ++i) {
        const auto wide = static_cast<int32_t>(grid[i]);
        out[i] = to[i] - from[i];
        if (2 * out[i] > wide) out[i] -= wide;
        if (2 * out[i] < -wide) out[i] += wide;
    }
    return out;
}

/// Returns whether an offset is the reverse of a forward one. Only the forward direction is stored, in which the first number that is not 0
/// is positive.
bool is_backward(const Coordinates& offset) {
    const auto first = std::find_if(offset.begin(), offset.end(), [](int32_t d) { return d != 0; });
    return first != offset.end() && *first < 0;
}

Coordinates reversed(Coordinates offset) {
    for (int32_t& d : offset) d = -d;
    return offset;
}

/// The pairs of ranks that one offset connects, and their traffic. `from`: the pairs by the rank from which the offset leads forward.
struct Offset {
    double messages = 0;
    uint32_t wrapped = 0;  ///< number of these pairs that cross the grid's edge
    std::map<uint32_t, const Pair*> from;
};
using Offsets = std::map<Coordinates, Offset>;

bool wraps(const Coordinates& at, const Coordinates& offset, const Grid& grid) {
    for (size_t i = 0; i < grid.size(); ++i) {
        const int32_t there = at[i] + offset[i];
        if (there < 0 || there >= static_cast<int32_t>(grid[i])) return true;
    }
    return false;
}

Offsets offsets_in(const std::vector<Pair>& pairs, const Grid& grid) {
    Offsets out;
    for (const Pair& pair : pairs) {
        uint32_t from = pair.a;
        Coordinates offset = offset_of(place_of(pair.a, grid), place_of(pair.b, grid), grid);
        if (is_backward(offset)) {
            offset = reversed(offset);
            from = pair.b;
        }
        if (std::any_of(offset.begin(), offset.end(), [](int32_t d) { return std::abs(d) > kReach; })) continue;
        Offset& one = out[offset];
        one.messages += pair.all.messages;
        one.wrapped += wraps(place_of(from, grid), offset, grid);
        one.from.emplace(from, &pair);
    }
    return out;
}

/// Returns the number of possible pairs at this offset that do not cross the edge.
double inner_places(const Coordinates& offset, const Grid& grid) {
    double places = 1;
    for (size_t i = 0; i < grid.size(); ++i) places *= std::max(0.0, static_cast<double>(grid[i]) - std::abs(offset[i]));
    return places;
}

/// Returns the offsets that occur at the share kEverywhere of their possible places, or at more.
Offsets regular(Offsets offsets, const Grid& grid) {
    std::erase_if(offsets, [&](const auto& one) {
        const double inner = inner_places(one.first, grid);
        return inner < 1 || static_cast<double>(one.second.from.size() - one.second.wrapped) < kEverywhere * inner;
    });
    return offsets;
}

/// Returns all grids of up to three dimensions, each at least 2 wide.
std::vector<Grid> grids_of(uint32_t size) {
    std::vector<Grid> out;
    if (size >= 2) out.push_back({size});
    for (uint32_t x = 2; x <= size / 2; ++x) {
        if (size % x != 0) continue;
        const uint32_t rest = size / x;
        out.push_back({x, rest});
        for (uint32_t y = 2; y <= rest / 2; ++y)
            if (rest % y == 0) out.push_back({x, y, rest / y});
    }
    return out;
}

/// Returns the grid of `to` processes with the same number of dimensions and the most similar shape.
Grid like(const Grid& grid, uint32_t from, uint32_t to) {
    const double factor = std::pow(static_cast<double>(to) / from, 1.0 / static_cast<double>(grid.size()));
    Grid best;
    double least = 0;
    for (const Grid& other : grids_of(to)) {
        if (other.size() != grid.size()) continue;
        double distance = 0;
        for (size_t i = 0; i < grid.size(); ++i) distance += std::abs(std::log(other[i] / (grid[i] * factor)));
        if (!best.empty() && distance >= least - 1e-9) continue;
        best = other;
        least = distance;
    }
    return best;
}

void add(std::map<std::pair<uint32_t, uint32_t>, Pair>& out, uint32_t one, uint32_t other, const Pair& like, double share = 1) {
    if (one == other) return;
    Pair& pair = out[{std::min(one, other), std::max(one, other)}];
    pair.a = std::min(one, other);
    pair.b = std::max(one, other);
    pair.all += like.all * share;
    pair.on_connection += like.on_connection * share;
    pair.in_memory += like.in_memory * share;
}

std::vector<Pair> values_of(const std::map<std::pair<uint32_t, uint32_t>, Pair>& all) {
    std::vector<Pair> out;
    out.reserve(all.size());
    for (const auto& [key, pair] : all) out.push_back(pair);
    return out;
}

/// Returns the rank in the old grid that corresponds to the coordinates `at` in the new one. A step by `offset` from that rank crosses the
/// old grid's edge exactly if the step from `at` crosses the new one's.
uint32_t source_of(const Coordinates& at, const Coordinates& offset, const Grid& now, const Grid& before) {
    uint32_t rank = 0, stride = 1;
    for (size_t i = 0; i < now.size(); ++i) {
        const auto wide = static_cast<int32_t>(now[i]), old = static_cast<int32_t>(before[i]);
        const int32_t there = at[i] + offset[i];
        int32_t from = static_cast<int32_t>(static_cast<int64_t>(at[i]) * old / wide);
        if (there >= wide) {
            from = old - (wide - at[i]);
        } else if (there < 0) {
            from = at[i];
        } else {
            from = std::clamp(from, std::max(0, -offset[i]), old - 1 - std::max(0, offset[i]));
        }
        rank += static_cast<uint32_t>(std::clamp(from, 0, old - 1)) * stride;
        stride *= before[i];
    }
    return rank;
}

std::vector<Pair> scale_grid(const std::vector<Pair>& pairs, const Grid& before, const Grid& now, uint32_t to) {
    std::map<std::pair<uint32_t, uint32_t>, Pair> out;
    for (const auto& [offset, one] : regular(offsets_in(pairs, before), before)) {
        for (uint32_t rank = 0; rank < to; ++rank) {
            const Coordinates at = place_of(rank, now);
            const auto source = one.from.find(source_of(at, offset, now, before));
            if (source == one.from.end()) continue;
            uint32_t other = 0, stride = 1;
            for (size_t i = 0; i < now.size(); ++i) {
                const auto wide = static_cast<int32_t>(now[i]);
                other += static_cast<uint32_t>(((at[i] + offset[i]) % wide + wide) % wide) * stride;
                stride *= now[i];
            }
            // If the new grid is so narrow that two offsets coincide, the pair gets the sum of both.
            add(out, rank, other, *source->second);
        }
    }
    return values_of(out);
}

/// The pairs of ranks along a curve, for scaling.
class Curve {
  public:
    Curve(const std::vector<Pair>& pairs, uint32_t from, uint32_t to) : pairs_(pairs), from_(from), to_(to) {
        for (const Pair& pair : pairs) {
            known_.emplace(key(pair.a, pair.b), &pair);
            if (pair.b - pair.a <= kNear) ++near_[pair.b - pair.a];
        }
        std::erase_if(near_, [&](const auto& one) { return one.second < kEverywhere * (from - one.first); });
    }

    std::vector<Pair> scaled() const {
        std::map<std::pair<uint32_t, uint32_t>, Pair> out;
        for (const auto& [distance, count] : near_) keep_near(distance, out);
        for (const Pair& pair : pairs_) {
            if (near_.contains(pair.b - pair.a)) continue;
            const double parallel = beside(pair, 1), mirrored = beside(pair, -1);
            // If no pair lies next to this one, both sums are 0, and the pair is added in both forms.
            if (parallel >= mirrored) spread(pair, false, out);
            if (mirrored >= parallel) spread(pair, true, out);
        }
        return values_of(out);
    }

  private:
    static uint64_t key(uint32_t a, uint32_t b) { return uint64_t{std::min(a, b)} << 32 | std::max(a, b); }

    /// Returns the messages of the two pairs beside this one: `a` moves by one rank, and `b` in the same direction (1) or the opposite one
    /// (-1).
    double beside(const Pair& pair, int64_t direction) const {
        double sum = 0;
        for (const int64_t step : {-1, 1}) {
            const int64_t a = pair.a + step, b = pair.b + step * direction;
            if (a < 0 || b < 0 || a >= from_ || b >= from_ || a == b) continue;
            const auto found = known_.find(key(static_cast<uint32_t>(a), static_cast<uint32_t>(b)));
            if (found != known_.end()) sum += found->second->all.messages;
        }
        return sum;
    }

    /// Adds the pairs (i, i + distance) for all i at whose position in the old run such a pair exists.
    void keep_near(uint32_t distance, std::map<std::pair<uint32_t, uint32_t>, Pair>& out) const {
        for (uint32_t i = 0; i + distance < to_; ++i) {
            const uint64_t middle = (2 * uint64_t{i} + distance + 1) * from_ / (2 * uint64_t{to_});
            const int64_t first = std::clamp<int64_t>(static_cast<int64_t>(middle) - distance / 2, 0, from_ - 1 - distance);
            // Use the nearest place that has the pair: a gap in the old run need not be a gap here.
            for (const int64_t step : {0, 1, -1}) {
                const int64_t a = first + step;
                if (a < 0 || a + distance >= from_) continue;
                const auto found = known_.find(key(static_cast<uint32_t>(a), static_cast<uint32_t>(a) + distance));
                if (found == known_.end()) continue;
                add(out, i, i + distance, *found->second);
                break;
            }
        }
    }

    /// Splits the ranks a and b into the ranks that replace them, and adds pairs of these: of equal positions, or if `mirrored` of opposite
    /// positions.
    void spread(const Pair& pair, bool mirrored, std::map<std::pair<uint32_t, uint32_t>, Pair>& out) const {
        const double ratio = static_cast<double>(to_) / from_;
        const auto pieces = static_cast<uint32_t>(std::max(1.0, std::ceil(ratio - 1e-9)));
        for (uint32_t piece = 0; piece < pieces; ++piece) {
            const double part = (piece + 0.5) / pieces;
            const auto one = static_cast<uint32_t>((pair.a + part) * ratio);
            const auto other = static_cast<uint32_t>((pair.b + (mirrored ? 1 - part : part)) * ratio);
            add(out, std::min(one, to_ - 1), std::min(other, to_ - 1), pair);
        }
    }

    const std::vector<Pair>& pairs_;
    const int64_t from_;
    const uint32_t to_;
    std::unordered_map<uint64_t, const Pair*> known_;
    std::map<uint32_t, double> near_;
};

}  // namespace

std::string Structure::name() const {
    if (grid.empty()) return "curve";
    return grid.size() == 1 ? "chain" : fmt::format("{} grid", fmt::join(grid, " x "));
}

Structure structure_of(const std::vector<Pair>& pairs, uint32_t size) {
    Structure best;
    double all = 0, most = kExplained, shortest = 0;
    for (const Pair& pair : pairs) all += pair.all.messages;
    if (all == 0) return best;
    for (const Grid& grid : grids_of(size)) {
        const Offsets offsets = regular(offsets_in(pairs, grid), grid);
        if (2 * static_cast<double>(offsets.size()) > kSparse * (size - 1)) continue;
        double explained = 0, length = 0;
        for (const auto& [offset, one] : offsets) {
            explained += one.messages;
            for (const int32_t d : offset) length += one.messages * std::abs(d);
        }
        const double share = explained / all;
        const bool as_good = share > most - 1e-9, better = share > most + 1e-9;
        if (!as_good || (!better && !best.grid.empty() && length >= shortest)) continue;
        best.grid = grid;
        most = share;
        shortest = length;
    }
    return best;
}

std::vector<Pair> scale(const std::vector<Pair>& pairs, const Structure& structure, uint32_t from, uint32_t to) {
    const Grid now = structure.grid.empty() ? Grid{} : like(structure.grid, from, to);
    return now.empty() ? Curve(pairs, from, to).scaled() : scale_grid(pairs, structure.grid, now, to);
}

}  // namespace starling::analysis
