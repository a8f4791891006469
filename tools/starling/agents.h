// Reads what other hosts report to `starling`: it runs itself there through the launch agent (ssh), and that process prints lines of JSON.
// No daemon is involved.
#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace starling {

/// The hosts that are watched. Not thread-safe. The destructor ends the agents.
class Agents {
  public:
    /// `words`: the arguments with which `starling` runs on the hosts; a shell there parses them.
    explicit Agents(std::vector<std::string> words) : words_(std::move(words)) {}
    Agents(const Agents&) = delete;
    Agents& operator=(const Agents&) = delete;
    ~Agents();

    /// Starts watching a host. Does nothing if it is watched already, or if there are too many hosts.
    void watch(const std::string& host);
    /// Reads the lines that have arrived, without waiting. Calls `take` with each line; `take` returns whether `starling` wrote it.
    using Take = std::function<bool(const std::string& host, const std::string& line)>;
    void read(const Take& take);
    /// Sleeps until data may have arrived, for at most `milliseconds`.
    void wait(int milliseconds) const;
    /// Returns whether every host has sent a line or has failed.
    bool settled() const;
    /// Returns whether this host can't send any more lines.
    bool silent(const std::string& host) const;
    /// Describes the hosts that can't be watched in a few words; empty if all can. `ended`: includes hosts whose agent has ended after it
    /// had sent lines.
    std::string trouble(bool ended) const;

  private:
    struct Host {
        std::string name;
        pid_t agent = -1;
        int fd = -1;         ///< output of the agent; -1 once it has ended
        std::string unread;  ///< begin of a line whose end has not been read yet
        std::string complaint;
        bool heard = false;
        size_t refused = 0;  ///< consecutive bytes read that `starling` did not write
    };
    void start(Host& host) const;
    static bool read_piece(Host& host, const Take& take);
    static void take_line(Host& host, const std::string& line, const Take& take);
    static void give_up(Host& host, const char* why);

    std::vector<std::string> words_;
    std::deque<Host> hosts_;
    size_t left_out_ = 0;
};

}  // namespace starling
