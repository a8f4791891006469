// The lines of a file that may be gzip-compressed, one after the other.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>
#include <vector>

namespace starling::analysis {

class Lines {
  public:
    /// Opens the file; a Refusal if it can't be read.
    explicit Lines(std::string path);
    ~Lines();
    Lines(const Lines&) = delete;
    Lines& operator=(const Lines&) = delete;

    /// The next line without its end, valid until the next call; false at the end. A Refusal if the file breaks off within
    /// its compressed data or a line is absurdly long.
    bool next(std::string_view& line);

  private:
    bool fill();

    std::string path_;
    gzFile file_;
    std::vector<char> buffer_;
    size_t begin_ = 0, end_ = 0;
};

}  // namespace starling::analysis
