#include "rank_rows.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

namespace starling::analysis {

namespace {

constexpr size_t kColumns = 240;

/// The time that the ranks of a row spent in phases during one column.
struct Cell {
    std::vector<std::pair<uint32_t, double>> seconds;  ///< by index of the phase
    double waited = 0;

    void add(uint32_t phase, double more, double share_waited) {
        waited += more * share_waited;
        for (auto& [known, sum] : seconds) {
            if (known != phase) continue;
            sum += more;
            return;
        }
        seconds.emplace_back(phase, more);
    }

    /// Returns the phase with most time, or -1, and the share of time waited in percent.
    std::pair<int, int> look() const {
        if (seconds.empty()) return {-1, 0};
        double sum = 0;
        for (const auto& each : seconds) sum += each.second;
        const auto most =
            std::max_element(seconds.begin(), seconds.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
        return {static_cast<int>(most->first), sum > 0 ? static_cast<int>(std::lround(100 * waited / sum)) : 0};
    }
};

/// Adds one part to the cells of its row, column by column.
void add(Cell* row, const Part& part, uint32_t phase, double step, double files) {
    const double share = part.seconds > 0 ? std::min(1.0, part.waits.sum() * files / part.seconds) : 0;
    const double end = part.began + part.seconds;
    for (auto column = static_cast<size_t>(part.began / step); column < kColumns; ++column) {
        const double from = std::max(part.began, static_cast<double>(column) * step);
        const double to = std::min(end, static_cast<double>(column + 1) * step);
        if (to > from) row[column].add(phase, to - from, share);
        if (end <= static_cast<double>(column + 1) * step) return;
    }
}

Data pieces(const Cell* row) {
    Data out = Data::array();
    for (size_t from = 0, to = 0; from < kColumns; from = to) {
        const auto look = row[from].look();
        for (to = from + 1; to < kColumns && row[to].look() == look;) ++to;
        out.push_back(to - from);
        out.push_back(look.first);
        out.push_back(look.second);
    }
    return out;
}

}  // namespace

Data rank_rows(const Run& run, uint32_t ranks_per_row) {
    double end = 0;
    for (const Span& span : run.spans)
        for (const Part& part : span.parts) end = std::max(end, part.began + part.seconds);
    const double step = end > 0 ? end / kColumns : 1, files = static_cast<double>(run.files.size());
    const size_t rows = (run.processes + ranks_per_row - 1) / ranks_per_row;
    std::vector<Cell> cells(rows * kColumns);
    std::unordered_map<std::string, uint32_t> numbers;
    Data names = Data::array();
    for (const Span& span : run.spans) {
        const auto [phase, fresh] = numbers.try_emplace(span.name, static_cast<uint32_t>(numbers.size()));
        if (fresh) names.push_back(span.name.empty() ? "start" : span.name);
        for (const Part& part : span.parts)
            add(&cells[part.process / ranks_per_row * kColumns], part, phase->second, step, files);
    }
    Data out{{"step", step}, {"phases", std::move(names)}, {"rows", Data::array()}};
    for (size_t row = 0; row < rows; ++row) out["rows"].push_back(pieces(&cells[row * kColumns]));
    return out;
}

}  // namespace starling::analysis
