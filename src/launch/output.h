// --tag-output: what the ranks print, line by line, with the rank before each line.
#pragma once

#include <deque>
#include <list>
#include <string>

#include "launch/event_loop.h"

namespace starling::launch {

/// Reads pipes and writes whole lines to the launcher's standard output and error. Never blocks the loop on
/// a slow reader: it stops reading the ranks' pipes instead, so they wait as they would have without it.
class OutputTagger {
  public:
    explicit OutputTagger(EventLoop& loop);
    ~OutputTagger();

    /// Makes a pipe whose lines go to descriptor `target` (1 or 2) with `prefix`. Returns the end to write
    /// to, which the caller closes; -1 with errno if there is no descriptor left.
    int open_pipe(int target, std::string prefix);

    /// Writes out what is in the pipes and waits for the reader. Called at the very end.
    void drain();

  private:
    struct Source {
        int fd;
        int target;
        std::string prefix;
        std::string line;  ///< begun, not ended yet
        bool paused = false;
    };
    struct Sink {
        int fd;
        std::string pending;
        bool waiting = false;  ///< for the reader to take some
        bool broken = false;
    };

    void on_readable(Source& source);
    bool read_some(Source& source);
    void add_text(Source& source, std::string_view text);
    void end(Source& source);
    void flush(Sink& sink, bool may_block);
    Sink& sink(int target) { return sinks_[target - 1]; }

    EventLoop& loop_;
    std::list<Source> sources_;
    Sink sinks_[2];
};

}  // namespace starling::launch
