// The file of mpiexec --profile.
#pragma once

#include <string>
#include <string_view>

#include "launch/client/options.h"
#include "launch/common/event_loop.h"

namespace starling::launch {

/// Lines, compressed where the name ends in .gz. Such a file has several parts, each whole in itself, so that what was written
/// when mpiexec is killed can be read.
class ProfileFile {
  public:
    ProfileFile() = default;
    ProfileFile(const ProfileFile&) = delete;
    ProfileFile& operator=(const ProfileFile&) = delete;
    ~ProfileFile() { close(); }

    /// Makes the file, with its first line; nothing if the options want none. Returns an empty string, or what is wrong.
    std::string open(const Options& options);
    bool is_open() const { return fd_ >= 0; }
    /// Whose timers see to it that lines do not wait for long; lasts until close().
    void use(EventLoop& loop) { loop_ = &loop; }
    /// Whole lines. False if the file has ended, which was told on standard error: its disk is full, say.
    bool write(std::string_view lines);
    /// Writes what waits. The loop is no longer used.
    void close();

  private:
    void flush();
    bool put(std::string_view bytes);

    EventLoop* loop_ = nullptr;
    EventLoop::TimerId timer_ = 0;
    std::string name_;
    std::string waiting_;
    int fd_ = -1;
    bool compressed_ = false;
};

}  // namespace starling::launch
