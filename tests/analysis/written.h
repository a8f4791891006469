// Profiles as mpiexec would write them, of runs that are made up.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "starling/profile/reader.h"

namespace starling::analysis {

/// From → to → messages, in the order of the first message.
using Matrix = std::map<uint32_t, std::vector<std::pair<uint32_t, uint64_t>>>;

struct Written {
    std::vector<std::string> lines;

    Written& add(const std::string& line) {
        lines.push_back(line);
        return *this;
    }
    std::string text() const;
    /// As a reader sees it, under this name.
    Run read(const std::string& name = "made-up.jsonl") const;
};

/// The head of a file, and one job of `size` ranks, `per_host` on each of the hosts a, b, …
Written begin(uint32_t size, uint32_t per_host = 0, const std::string& application = "made-up");

/// Adds an occurrence of a phase: a line per rank. All messages have 100 bytes; `on_connections` of 10 went on connections.
void add_phase(Written& file, uint32_t size, const std::string& name, uint64_t from, uint64_t to, double began,
               const Matrix& matrix, uint64_t on_connections = 0);

/// A message count from each rank to some others.
Matrix ring(uint32_t size, uint64_t messages);
Matrix torus(uint32_t wide, uint32_t high, uint64_t messages);

}  // namespace starling::analysis
