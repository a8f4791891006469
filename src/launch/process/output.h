// What the ranks print, kept in whole lines: with the rank before each line (--tag-output), or on its way to the host
// where mpiexec is.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "job/job_description.h"
#include "launch/common/event_loop.h"

namespace starling::launch {

/// Reads pipes and hands on whole lines, to the launcher's standard output and error or to who forwards them. Never
/// blocks the loop on a slow reader: it stops reading the ranks' pipes instead, so they wait as they would have
/// without it.
class OutputTagger {
  public:
    explicit OutputTagger(EventLoop& loop);
    OutputTagger(const OutputTagger&) = delete;
    OutputTagger& operator=(const OutputTagger&) = delete;
    ~OutputTagger();

    /// Makes a pipe whose lines go to descriptor `target` (1 or 2) with `prefix`. With `job` they go to forward
    /// instead, as lines of that job; without a prefix an unfinished line follows when no more comes for a moment.
    /// Returns the end to write to, which the caller closes; -1 with errno if there is no descriptor left.
    int open_pipe(int target, std::string prefix, job::JobId job = 0);

    /// Who sends lines on. What was sent counts as pending until acknowledge().
    std::function<void(job::JobId, int target, std::string lines)> forward;
    void acknowledge(job::JobId job, int target, size_t bytes);

    /// Lines that came from elsewhere, for this process's standard output or error. `written` is called when there is
    /// room for more.
    void write_lines(int target, std::string_view lines, std::function<void()> written);

    /// Calls `done`, now or later, when all lines for this process's own descriptors are written, or nobody reads them.
    void when_written(std::function<void()> done);

    /// Hands on what is in the job's pipes and closes them: its ranks are gone.
    void end_job(job::JobId job);

    /// Writes out what is in the pipes and waits for the reader. Called at the very end.
    void drain();

  private:
    struct Sink {
        int target;
        job::JobId job;  ///< 0: this process's descriptor `target`
        std::string pending;
        size_t in_flight = 0;  ///< handed to forward, not acknowledged
        bool waiting = false;  ///< for the reader to take some
        bool broken = false;
        std::vector<std::function<void()>> on_room;
    };
    struct Source {
        int fd;
        Sink* sink;
        std::string prefix;
        std::string line;  ///< begun, not ended yet
        bool paused = false;
        EventLoop::TimerId patience = 0;  ///< after which an unfinished line goes out
        EventLoop::Clock::time_point last_text{};
        uint64_t bytes = 0;  ///< that came in all
    };

    void on_readable(Source& source);
    bool read_some(Source& source);
    void add_text(Source& source, std::string_view text);
    void hand_on_unfinished(Source& source);
    void end(Source& source);
    void flush(Sink& sink, bool may_block);
    void write_out(Sink& sink, bool may_block);
    void regulate(Sink& sink);
    void check_written();
    Sink& sink(int target, job::JobId job);

    EventLoop& loop_;
    std::list<Source> sources_;
    std::map<std::pair<job::JobId, int>, Sink> sinks_;
    std::function<void()> when_written_;
};

}  // namespace starling::launch
