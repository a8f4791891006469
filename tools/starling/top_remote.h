// What `starling top` sees on other hosts: there it runs itself, started through the launcher agent (ssh), and says in JSON
// what it sees. No daemon has anything to do with it.
#pragma once

#include <sys/types.h>

#include <deque>
#include <string>
#include <vector>

#include "top_watch.h"

namespace starling::top {

/// The hosts that are looked at. Not thread-safe. Its end ends what it has started.
class RemoteHosts {
  public:
    RemoteHosts(double interval, std::string filter) : interval_(interval), filter_(std::move(filter)) {}
    RemoteHosts(const RemoteHosts&) = delete;
    RemoteHosts& operator=(const RemoteHosts&) = delete;
    ~RemoteHosts();

    /// Begins to look at a host; nothing if that is done already, or if there are too many.
    void watch(const std::string& host);
    /// Reads what has come, without waiting. Adds the jobs to `jobs`: what runs there of a job that is in it becomes part
    /// of that one.
    void add_to(std::vector<JobView>& jobs);
    /// Whether every host has said something, or can't.
    bool settled() const;
    /// What is wrong with hosts that can't be looked at, in a few words; empty if nothing is.
    std::string trouble() const;

  private:
    struct Host {
        std::string name;
        pid_t agent = -1;
        int fd = -1;          ///< what the agent says; -1 once it has ended
        std::string unread;   ///< begin of a line
        std::string complaint;
        bool heard = false;
        std::vector<JobView> jobs;
    };
    void start(Host& host) const;
    static void read_from(Host& host);

    double interval_;
    std::string filter_;
    std::deque<Host> hosts_;
    size_t left_out_ = 0;
};

/// The jobs of a line that json() has written; false if it is none.
bool parse(const std::string& line, std::vector<JobView>& jobs);

}  // namespace starling::top
