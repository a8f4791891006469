// The output file of mpiexec --profile.
#pragma once

#include <string>
#include <string_view>

#include "launch/client/options.h"
#include "launch/client/profile_sites.h"
#include "launch/client/traffic_record.h"
#include "launch/common/event_loop.h"

namespace starling::launch {

/// A file of lines, compressed if its name ends in .gz. A compressed file has several complete parts, so that the written parts can be read
/// if mpiexec is killed.
class ProfileFile {
  public:
    ProfileFile() = default;
    ProfileFile(const ProfileFile&) = delete;
    ProfileFile& operator=(const ProfileFile&) = delete;
    ~ProfileFile() { close(); }

    /// Creates the file with its first line, if the options request it. Returns an empty string, or an error sentence.
    std::string open(const Options& options);
    /// Passes all lines on to `record`, too, with or without a file; null: nowhere.
    void pass_to(TrafficRecord* record) { record_ = record; }
    /// Returns whether lines are wanted, for the file or a record.
    bool is_open() const { return fd_ >= 0 || record_; }
    /// Returns a sentence about where the profile is and how to read it; empty if there is none, or it is incomplete.
    std::string whereabouts() const;
    /// Sets the loop whose timers limit how long lines stay buffered; it must exist until close().
    void use(EventLoop& loop) { loop_ = &loop; }
    /// Writes whole lines. Returns false if nothing wants them any more: the file was closed after an error such as a full disk, which was reported on standard error.
    bool write(std::string_view lines);
    /// Call it when the job has started. Without it close() deletes the file.
    void keep() { kept_ = true; }
    /// Writes the buffered lines and those of the call sites, and closes the file. The loop is not used afterwards.
    void close();

  private:
    void flush();
    bool put(std::string_view bytes);
    void remove();

    TrafficRecord* record_ = nullptr;
    EventLoop* loop_ = nullptr;
    EventLoop::TimerId timer_ = 0;
    std::string name_;
    std::string waiting_;
    ProfileSites sites_;
    int fd_ = -1;
    bool compressed_ = false;
    bool kept_ = false;      ///< whether the job has started
    bool complete_ = false;  ///< true: all lines were written, and the file is closed
};

}  // namespace starling::launch
