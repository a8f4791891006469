// Divides the vertices of a graph into groups of given sizes, so that heavy edges lie within groups: ranks and their traffic on hosts. The
// weights are whole numbers, so that all processes that divide the same graph get the same groups.
#pragma once

#include <cstdint>
#include <vector>

namespace starling {

/// An undirected graph with weights. Edges between the same two vertices, in either direction, are one edge with the sum of their weights.
class WeightedGraph {
  public:
    struct WeightedEdge {
        uint32_t a, b;
        uint64_t weight;
    };
    struct Neighbor {
        uint32_t vertex;
        uint64_t weight;
    };
    /// Edges of weight 0, and those of a vertex to itself, are left out.
    WeightedGraph(uint32_t vertices, std::vector<WeightedEdge> edges);

    uint32_t size() const { return static_cast<uint32_t>(neighbors_.size()); }
    const std::vector<Neighbor>& of(uint32_t vertex) const { return neighbors_[vertex]; }
    /// Returns the sum of the weights of all edges between different groups.
    uint64_t between(const std::vector<uint32_t>& group_of) const;

  private:
    std::vector<std::vector<Neighbor>> neighbors_;
};

/// The vertex by which a group grows, among those with equal weight to it.
enum class GrowthOrder : uint8_t {
    outer,  ///< the one with least weight to unassigned vertices: fills corners
    near,   ///< the one that the group has touched first: the group is compact
};

/// Fills the groups one after the other: each begins with the unassigned vertex that has least weight to other unassigned ones, and grows
/// by the vertex with most weight to it. `room` has the size of each group; together they are the size of the graph.
std::vector<uint32_t> grow_groups(const WeightedGraph& graph, const std::vector<uint32_t>& room, GrowthOrder growth);

/// Improves groups. First moves vertices out of groups that have more than `room`, each time the one for which the move costs least. Then
/// swaps vertices of different groups while that lowers between(), within a limit of work.
std::vector<uint32_t> improve_groups(const WeightedGraph& graph, const std::vector<uint32_t>& room,
                                     std::vector<uint32_t> start);

/// Returns the best groups of those that growing and improving find, or `start` unless they lower between() by one hundredth.
std::vector<uint32_t> find_groups(const WeightedGraph& graph, const std::vector<uint32_t>& start, uint32_t groups);

}  // namespace starling
