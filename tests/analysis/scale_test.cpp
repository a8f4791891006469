// Scales a plan to another number of processes, and measures how many of the true partners the result contains.
#include "starling/profile/scale.h"

#include <gtest/gtest.h>

#include <set>

#include "written.h"

namespace starling::analysis {
namespace {

using Links = std::set<std::pair<uint32_t, uint32_t>>;

std::vector<Pair> pairs_in(const Matrix& matrix) {
    uint32_t size = 0;
    for (const auto& [from, row] : matrix) size = std::max(size, from + 1);
    Written file = begin(size);
    add_phase(file, size, "p", 1, 1, 0, matrix);
    return pairs_of(file.read());
}

Links links(const std::vector<Pair>& pairs) {
    Links out;
    for (const Pair& pair : pairs) out.emplace(pair.a, pair.b);
    return out;
}

struct Score {
    double found;  ///< fraction of the true pairs that the guess contains
    double right;  ///< fraction of the guessed pairs that are true
};

Score score(const Matrix& before, uint32_t from, const Matrix& after, uint32_t to) {
    const std::vector<Pair> pairs = pairs_in(before);
    const Links guessed = links(scale(pairs, structure_of(pairs, from), from, to)), real = links(pairs_in(after));
    double common = 0;
    for (const auto& link : real) common += guessed.contains(link);
    const Score out{common / static_cast<double>(real.size()), common / static_cast<double>(guessed.size())};
    std::printf("  %u -> %u: %.0f %% of the partners found, %.0f %% of the guesses right\n", from, to, 100 * out.found,
                100 * out.right);
    return out;
}

Matrix grid(uint32_t wide, uint32_t high, uint32_t deep, bool periodic) {
    Matrix out;
    const auto at = [&](uint32_t x, uint32_t y, uint32_t z) { return (z * high + y) * wide + x; };
    const auto connect = [&](uint32_t one, uint32_t other) {
        out[one].emplace_back(other, 50);
        out[other].emplace_back(one, 50);
    };
    for (uint32_t z = 0; z < deep; ++z) {
        for (uint32_t y = 0; y < high; ++y) {
            for (uint32_t x = 0; x < wide; ++x) {
                if (x + 1 < wide || periodic) connect(at(x, y, z), at((x + 1) % wide, y, z));
                if (y + 1 < high || periodic) connect(at(x, y, z), at(x, (y + 1) % high, z));
                if (deep > 1 && (z + 1 < deep || periodic)) connect(at(x, y, z), at(x, y, (z + 1) % deep));
            }
        }
    }
    return out;
}

/// Returns the position of a cell on the Hilbert curve through a square of `side` cells.
uint32_t hilbert(uint32_t side, uint32_t x, uint32_t y) {
    uint32_t out = 0;
    for (uint32_t half = side / 2; half > 0; half /= 2) {
        const uint32_t right = (x & half) != 0, up = (y & half) != 0;
        out += half * half * ((3 * right) ^ up);
        if (!up) {
            if (right) {
                x = side - 1 - x;
                y = side - 1 - y;
            }
            std::swap(x, y);
        }
    }
    return out;
}

uint32_t morton(uint32_t side, uint32_t x, uint32_t y) {
    uint32_t out = 0;
    for (uint32_t bit = 0; (1u << bit) < side; ++bit) out |= (x >> bit & 1) << (2 * bit) | (y >> bit & 1) << (2 * bit + 1);
    return out;
}

/// Cuts a square mesh into `size` pieces along the space-filling curve `order`, one piece per rank. Ranks with adjacent cells are neighbors
/// and exchange one message per edge.
Matrix curve(uint32_t (*order)(uint32_t, uint32_t, uint32_t), uint32_t side, uint32_t size) {
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> edges;
    const auto owner = [&](uint32_t x, uint32_t y) {
        return static_cast<uint32_t>(uint64_t{order(side, x, y)} * size / (uint64_t{side} * side));
    };
    for (uint32_t y = 0; y < side; ++y) {
        for (uint32_t x = 0; x < side; ++x) {
            for (const auto& [nx, ny] : {std::pair(x + 1, y), std::pair(x, y + 1)}) {
                if (nx >= side || ny >= side || owner(x, y) == owner(nx, ny)) continue;
                ++edges[{owner(x, y), owner(nx, ny)}];
                ++edges[{owner(nx, ny), owner(x, y)}];
            }
        }
    }
    Matrix out;
    for (const auto& [link, count] : edges) out[link.first].emplace_back(link.second, count);
    return out;
}

void expect_all(const Score& score) {
    EXPECT_DOUBLE_EQ(score.found, 1);
    EXPECT_DOUBLE_EQ(score.right, 1);
}

TEST(Scale, ARingStaysARing) {
    EXPECT_EQ(structure_of(pairs_in(ring(16, 9)), 16).grid, (std::vector<uint32_t>{16}));
    expect_all(score(ring(16, 9), 16, ring(64, 9), 64));
    expect_all(score(ring(64, 9), 64, ring(24, 9), 24));
    expect_all(score(ring(16, 9), 16, ring(17, 9), 17));
}

TEST(Scale, GridsKeepTheirShape) {
    EXPECT_EQ(structure_of(pairs_in(torus(8, 8, 9)), 64).grid, (std::vector<uint32_t>{8, 8}));
    EXPECT_EQ(structure_of(pairs_in(torus(8, 4, 9)), 32).name(), "8 x 4 grid");
    expect_all(score(torus(8, 8, 9), 64, torus(16, 16, 9), 256));
    expect_all(score(torus(16, 16, 9), 256, torus(8, 8, 9), 64));
    expect_all(score(torus(8, 4, 9), 32, torus(16, 8, 9), 128));
    expect_all(score(grid(6, 6, 1, false), 36, grid(9, 9, 1, false), 81));
    expect_all(score(grid(4, 4, 4, false), 64, grid(8, 8, 8, false), 512));
    expect_all(score(grid(4, 4, 4, true), 64, grid(6, 6, 6, true), 216));
    expect_all(score(grid(8, 8, 8, true), 512, grid(5, 5, 5, true), 125));
}

TEST(Scale, ASmallGridToo) {
    expect_all(score(grid(4, 4, 1, false), 16, grid(8, 8, 1, false), 64));
    expect_all(score(torus(4, 4, 9), 16, torus(8, 8, 9), 64));
}

// The scaled plan must find the partners of most messages, not all: those at the corners of the pieces cannot be predicted.
TEST(Scale, PiecesOfACurveFindMostPartners) {
    EXPECT_TRUE(structure_of(pairs_in(curve(hilbert, 64, 16)), 16).grid.empty());
    for (const auto& [from, to] : {std::pair(16u, 64u), std::pair(32u, 64u), std::pair(64u, 256u), std::pair(48u, 64u)}) {
        const Score hilbert_score = score(curve(hilbert, 64, from), from, curve(hilbert, 64, to), to);
        EXPECT_GE(hilbert_score.found, 0.6);
        const Score morton_score = score(curve(morton, 64, from), from, curve(morton, 64, to), to);
        EXPECT_GE(morton_score.found, 0.5);
    }
}

TEST(Scale, MessagesOfAPlaceStayThere) {
    // The ranks in the middle of a chain send ten times as many messages as those at its ends.
    Matrix chain;
    chain[15] = {};
    for (uint32_t i = 0; i + 1 < 16; ++i) chain[i].emplace_back(i + 1, i >= 4 && i < 11 ? 100 : 10);
    const std::vector<Pair> pairs = pairs_in(chain);
    for (const Pair& pair : scale(pairs, structure_of(pairs, 16), 16, 64)) {
        EXPECT_EQ(pair.b, pair.a + 1);
        if (pair.a >= 20 && pair.a < 40) { EXPECT_EQ(pair.all.messages, 100) << pair.a; }
        if (pair.a < 12 || pair.a > 50) { EXPECT_EQ(pair.all.messages, 10) << pair.a; }
    }
}

}  // namespace
}  // namespace starling::analysis
