// Passes standard input to rank 0: reads it here, and writes it to the rank's pipe, which may be on another host.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "launch/common/event_loop.h"

namespace starling::launch {

/// Reads this process's standard input, one piece at a time. Reads from a terminal only in its foreground: a read in the background would
/// stop the process (SIGTTIN).
class InputReader {
  public:
    /// Creates a reader. `on_data` receives each piece, and an empty one at the end of the input.
    InputReader(EventLoop& loop, std::function<void(std::string)> on_data) : loop_(loop), on_data_(std::move(on_data)) {}
    InputReader(const InputReader&) = delete;
    InputReader& operator=(const InputReader&) = delete;
    ~InputReader() { stop(); }

    /// Reads one piece as soon as input is available and this process is in the foreground. Must also be called after SIGCONT.
    void next();
    void stop();

  private:
    bool in_foreground() const;
    void on_ready();
    void check_again();

    EventLoop& loop_;
    std::function<void(std::string)> on_data_;
    bool watching_ = false;
    bool ended_ = false;
    EventLoop::TimerId soon_ = 0;  ///< timer for the next try, for a regular file (no epoll) and in the background
};

/// The pipe that is a rank's standard input.
class InputPipe {
  public:
    /// `on_taken` is called each time the pipe has taken all data, or when the pipe has no reader any more.
    InputPipe(EventLoop& loop, std::function<void()> on_taken) : loop_(loop), on_taken_(std::move(on_taken)) {}
    InputPipe(const InputPipe&) = delete;
    InputPipe& operator=(const InputPipe&) = delete;
    ~InputPipe() { close_pipe(); }

    /// Creates the pipe. Returns the rank's end, which the caller must close, or -1 with errno.
    int open_pipe();
    /// Writes without blocking. An empty piece marks the end of the input.
    void feed(std::string data);
    /// Closes the pipe because the rank has ended.
    void close_pipe();

  private:
    void on_writable();

    EventLoop& loop_;
    std::function<void()> on_taken_;
    int to_rank_ = -1;
    bool watching_ = false;
    std::string pending_;
};

/// The input pipes of several ranks of one host, which all get the same data.
class InputFan {
  public:
    /// `on_taken` is called each time all pipes have taken all data, or have no reader any more.
    InputFan(EventLoop& loop, std::function<void()> on_taken) : loop_(loop), on_taken_(std::move(on_taken)) {}
    InputFan(const InputFan&) = delete;
    InputFan& operator=(const InputFan&) = delete;

    /// Creates the pipe of a rank. Returns the rank's end, which the caller must close, or -1 with errno.
    int open_pipe(uint32_t rank);
    /// Writes to all pipes without blocking; not before the data before it were taken. An empty piece marks the end of the input.
    void feed(const std::string& data);
    /// Closes the pipe of a rank that has ended.
    void close_pipe(uint32_t rank);

  private:
    struct InputBranch {
        uint32_t rank;
        bool waits = false;  ///< true: the pipe has not taken its data yet
        std::unique_ptr<InputPipe> pipe;
    };
    void note_taken(InputBranch& branch);
    void check_taken();

    EventLoop& loop_;
    std::function<void()> on_taken_;
    std::list<InputBranch> branches_;
    bool feeding_ = false;
};

/// An InputReader and an InputPipe in one process. A rank cannot read the terminal itself: it has its own process group, which the terminal
/// would stop.
class InputForwarder {
  public:
    explicit InputForwarder(EventLoop& loop)
        : pipe_(loop, [this] { reader_.next(); }), reader_(loop, [this](std::string data) { pipe_.feed(std::move(data)); }) {}

    int open_pipe() { return pipe_.open_pipe(); }
    /// Starts to read the standard input. Must be called again after SIGCONT.
    void resume() { reader_.next(); }
    /// Stops reading, because the rank has ended.
    void stop() {
        reader_.stop();
        pipe_.close_pipe();
    }

  private:
    InputPipe pipe_;
    InputReader reader_;
};

}  // namespace starling::launch
