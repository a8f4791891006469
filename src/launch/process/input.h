// Standard input on its way to rank 0: read here, written to a pipe there, which may be on another host.
#pragma once

#include <functional>
#include <string>

#include "launch/common/event_loop.h"

namespace starling::launch {

/// Reads this process's standard input, one piece after the other. From a terminal only while in its foreground: a
/// read in the background would stop the process (SIGTTIN).
class InputReader {
  public:
    /// `on_data` gets each piece, an empty one at the end.
    InputReader(EventLoop& loop, std::function<void(std::string)> on_data) : loop_(loop), on_data_(std::move(on_data)) {}
    InputReader(const InputReader&) = delete;
    InputReader& operator=(const InputReader&) = delete;
    ~InputReader() { stop(); }

    /// Reads one piece as soon as there is one and this is the foreground. Also to be called after SIGCONT.
    void next();
    void stop();

  private:
    bool in_foreground() const;
    void on_ready();
    void look_again();

    EventLoop& loop_;
    std::function<void(std::string)> on_data_;
    bool watching_ = false;
    bool ended_ = false;
    EventLoop::TimerId soon_ = 0;  ///< for a file, which can't be watched, and in the background
};

/// The pipe that is a rank's standard input.
class InputPipe {
  public:
    /// `on_taken` is called each time all that was given is in the pipe, or nobody will read it any more.
    InputPipe(EventLoop& loop, std::function<void()> on_taken) : loop_(loop), on_taken_(std::move(on_taken)) {}
    InputPipe(const InputPipe&) = delete;
    InputPipe& operator=(const InputPipe&) = delete;
    ~InputPipe() { close_pipe(); }

    /// Makes the pipe; returns the end for the rank, which the caller closes, or -1 with errno.
    int open_pipe();
    /// Writes, without blocking. An empty piece is the end.
    void feed(std::string data);
    /// The rank is gone.
    void close_pipe();

  private:
    void on_writable();

    EventLoop& loop_;
    std::function<void()> on_taken_;
    int to_rank_ = -1;
    bool watching_ = false;
    std::string pending_;
};

/// Both together. A rank is in a process group of its own, which a terminal would stop for reading: so the launcher
/// reads and hands on.
class InputForwarder {
  public:
    explicit InputForwarder(EventLoop& loop)
        : pipe_(loop, [this] { reader_.next(); }), reader_(loop, [this](std::string data) { pipe_.feed(std::move(data)); }) {}

    int open_pipe() { return pipe_.open_pipe(); }
    /// Begins to read; to be called again after SIGCONT.
    void resume() { reader_.next(); }
    /// Rank 0 is gone.
    void stop() {
        reader_.stop();
        pipe_.close_pipe();
    }

  private:
    InputPipe pipe_;
    InputReader reader_;
};

}  // namespace starling::launch
