#include "lines.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "run.h"

namespace starling::analysis {

namespace {
constexpr size_t kPiece = 1 << 18;
constexpr size_t kLongest = size_t{1} << 30;  ///< limit of a line in bytes; a rank with a million partners stays far below
}  // namespace

Lines::Lines(std::string path) : path_(std::move(path)), file_(nullptr), buffer_(kPiece) {
    struct stat status;
    const bool exists = stat(path_.c_str(), &status) == 0;
    if (exists && S_ISCHR(status.st_mode))
        throw Refusal(path_ + " is a device: name a file that mpiexec --profile has written");
    errno = 0;
    if (exists && S_ISDIR(status.st_mode))
        errno = EISDIR;
    else
        file_ = gzopen(path_.c_str(), "rbe");
    if (!file_) throw Refusal("cannot read " + path_ + ": " + std::strerror(errno ? errno : ENOMEM));
    gzbuffer(file_, kPiece);
}

Lines::~Lines() {
    if (file_) gzclose_r(file_);
}

// Reads more data after the unread rest. Returns false at the end of the file.
bool Lines::fill() {
    if (begin_ > 0) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
    }
    if (end_ == buffer_.size()) {
        if (buffer_.size() >= kLongest)
            throw Refusal(path_ +
                          " is not a profile: it has a line that is longer than a "
                          "profile's lines can be");
        buffer_.resize(buffer_.size() * 2);
    }
    const int got = gzread(file_, buffer_.data() + end_, static_cast<unsigned>(std::min(buffer_.size() - end_, kPiece)));
    int error = Z_OK;
    const char* const text = gzerror(file_, &error);
    if (got < 0 || (error != Z_OK && error != Z_BUF_ERROR))
        throw Refusal("cannot read " + path_ + ": " + (error == Z_ERRNO ? std::strerror(errno) : text));
    if (error == Z_BUF_ERROR) throw Refusal(path_ + " is truncated within its compressed data");
    // Zero bytes may come without end, through a pipe or from a few compressed bytes.
    if (got > 0 && std::memchr(buffer_.data() + end_, 0, static_cast<size_t>(got)))
        throw Refusal(path_ + " is not a profile: it has a zero byte");
    end_ += static_cast<size_t>(got);
    return got > 0;
}

bool Lines::next(std::string_view& line) {
    size_t looked = 0;
    while (true) {
        const char* const from = buffer_.data() + begin_;
        if (const void* found = std::memchr(from + looked, '\n', end_ - begin_ - looked)) {
            line = {from, static_cast<size_t>(static_cast<const char*>(found) - from)};
            begin_ += line.size() + 1;
            return true;
        }
        looked = end_ - begin_;
        if (fill()) continue;
        if (begin_ == end_) return false;
        line = {buffer_.data() + begin_, end_ - begin_};
        begin_ = end_;
        return true;
    }
}

}  // namespace starling::analysis
