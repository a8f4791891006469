// Formats a table for a terminal: each column is as wide as its longest cell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace starling::analysis {

class Table {
  public:
    /// Creates a table. `alignment` has one letter per column: l left, r right.
    Table(std::string_view alignment, std::vector<std::string> header) : alignment_(alignment) { add(std::move(header)); }
    void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
    bool empty() const { return rows_.size() == 1; }
    /// Returns the table with two spaces in front of every line.
    std::string text() const;

  private:
    std::string alignment_;
    std::vector<std::vector<std::string>> rows_;
};

/// Shortens text of more than `most` bytes and appends "…".
std::string cut(std::string_view text, size_t most);

/// Returns the text with `?` for every control character but the line's end: names in a file may contain commands to the terminal.
std::string without_controls(std::string text);

}  // namespace starling::analysis
