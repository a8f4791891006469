// What `starling` sees on other hosts: there it runs itself, started through the launcher agent (ssh), and says in lines of
// JSON what it sees. No daemon has anything to do with it.
#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace starling {

/// The hosts that are looked at. Not thread-safe. Its end ends what it has started.
class Agents {
  public:
    /// `words`: what starling is told there, after its name; they go through a shell.
    explicit Agents(std::vector<std::string> words) : words_(std::move(words)) {}
    Agents(const Agents&) = delete;
    Agents& operator=(const Agents&) = delete;
    ~Agents();

    /// Begins to look at a host; nothing if that is done already, or if there are too many.
    void watch(const std::string& host);
    /// Reads what has come, without waiting. `take` gets each line and says whether it is one that starling has written.
    using Take = std::function<bool(const std::string& host, const std::string& line)>;
    void read(const Take& take);
    /// Sleeps until something may have come, for at most so long.
    void wait(int milliseconds) const;
    /// Whether every host has said something, or can't.
    bool settled() const;
    /// Whether this host can't say anything any more.
    bool silent(const std::string& host) const;
    /// What is wrong with hosts that can't be looked at, in a few words; empty if nothing is. `ended`: that an agent has
    /// ended is wrong too, if it had said something before.
    std::string trouble(bool ended) const;

  private:
    struct Host {
        std::string name;
        pid_t agent = -1;
        int fd = -1;         ///< what the agent says; -1 once it has ended
        std::string unread;  ///< begin of a line
        std::string complaint;
        bool heard = false;
        size_t refused = 0;  ///< bytes in a row that starling has not written
    };
    void start(Host& host) const;
    static bool read_piece(Host& host, const Take& take);
    static void take_line(Host& host, const std::string& line, const Take& take);
    static void give_up(Host& host, const char* why);

    std::vector<std::string> words_;
    std::deque<Host> hosts_;
    size_t left_out_ = 0;
};

/// A word as a shell takes it, whatever is in it.
std::string quoted(const std::string& word);

}  // namespace starling
