// Writes profiles of fictitious runs in mpiexec's format.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "starling/profile/reader.h"

namespace starling::analysis {

/// Sender → receiver → messages, in the order of the first message.
using Matrix = std::map<uint32_t, std::vector<std::pair<uint32_t, uint64_t>>>;

struct Written {
    std::vector<std::string> lines;

    Written& add(const std::string& line) {
        lines.push_back(line);
        return *this;
    }
    std::string text() const;
    /// Parses the lines with the profile reader, as if they were in a file of this name.
    Run read(const std::string& name = "made-up.jsonl") const;
};

/// Returns a file's head and one job of `size` ranks, `per_host` on each of the hosts a, b, … (0: all on one host).
Written begin(uint32_t size, uint32_t per_host = 0, const std::string& application = "made-up");

/// Adds an occurrence of a phase: one line per rank. All messages have 100 bytes; `on_connections` tenths of them used connections.
void add_phase(Written& file, uint32_t size, const std::string& name, uint64_t from, uint64_t to, double began,
               const Matrix& matrix, uint64_t on_connections = 0);

/// Traffic patterns: the number of messages from each rank to its neighbors.
Matrix ring(uint32_t size, uint64_t messages);
Matrix torus(uint32_t wide, uint32_t high, uint64_t messages);

}  // namespace starling::analysis
