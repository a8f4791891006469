// Reads a file line by line; the file may be gzip-compressed.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>
#include <vector>

namespace starling::analysis {

class Lines {
  public:
    /// Opens the file; throws a Refusal if it can't be read.
    explicit Lines(std::string path);
    ~Lines();
    Lines(const Lines&) = delete;
    Lines& operator=(const Lines&) = delete;

    /// Sets `line` to the next line without its end, valid until the next call. Returns false at the end of the file. Throws a Refusal if
    /// the compressed data are truncated or a line is far too long.
    bool next(std::string_view& line);

  private:
    bool fill();

    std::string path_;
    gzFile file_;
    std::vector<char> buffer_;
    size_t begin_ = 0, end_ = 0;
};

}  // namespace starling::analysis
