// A list of the pieces of a block, as a member on another host sends it to an aggregator. A piece takes a gap and a length; equal ones
// that follow each other take one entry together. Numbers are stored in as many bytes as they need, so an entry has 3 bytes at least.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "file/system/open_file.h"

namespace starling::file {

/// Writes a list. Pieces are added in increasing order; offsets count from the block's beginning.
class PieceListWriter {
  public:
    explicit PieceListWriter(std::vector<std::byte>& out) : out_(out) {}
    void add(const Extent& piece);
    void finish();

  private:
    std::vector<std::byte>& out_;
    int64_t end_ = 0, gap_ = 0, bytes_ = 0, repeats_ = 0;
};

/// Reads a list that another process has sent.
class PieceListReader {
  public:
    PieceListReader(std::span<const std::byte> list, int64_t block) : list_(list), block_(block) {}
    /// Returns the next piece; one of no bytes at the end, or where the list leaves the block.
    Extent next();

  private:
    bool read(int64_t& number);
    std::span<const std::byte> list_;
    int64_t block_;
    int64_t end_ = 0, gap_ = 0, bytes_ = 0, repeats_ = 0;
};

}  // namespace starling::file
