// Standard input for rank 0 when it is a terminal: ranks are in process groups of their own, which the
// terminal would stop for reading, so the launcher reads and hands on.
#pragma once

#include <string>

#include "launch/event_loop.h"

namespace starling::launch {

class InputForwarder {
  public:
    explicit InputForwarder(EventLoop& loop) : loop_(loop) {}
    ~InputForwarder();

    /// Makes the pipe; returns the end for the rank, which the caller closes, or -1 with errno.
    int open_pipe();
    /// Begins to read if this process is in the terminal's foreground; to be called again after SIGCONT.
    void resume();
    /// Rank 0 is gone.
    void stop();

  private:
    void on_input();
    void on_writable();
    void close_pipe();

    EventLoop& loop_;
    int to_rank_ = -1;
    bool reading_ = false;
    bool ended_ = false;
    std::string pending_;
};

}  // namespace starling::launch
