// A table for a terminal: columns as wide as their longest cell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace starling::analysis {

class Table {
  public:
    /// One letter per column: l left, r right.
    Table(std::string_view alignment, std::vector<std::string> header) : alignment_(alignment) { add(std::move(header)); }
    void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
    bool empty() const { return rows_.size() == 1; }
    /// With two spaces in front of every line.
    std::string text() const;

  private:
    std::string alignment_;
    std::vector<std::vector<std::string>> rows_;
};

/// Its beginning with "…" if it is longer than so many characters.
std::string cut(std::string_view text, size_t most);

}  // namespace starling::analysis
