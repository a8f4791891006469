// What the ranks print, kept in whole lines: on its way to the launcher's own descriptors, with the rank before each line if
// that is wanted (--tag-output), or to the host where mpiexec is.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "job/job_description.h"
#include "launch/common/event_loop.h"

namespace starling::launch {

/// Where a rank's output goes.
struct OutputRoute {
    int target = 1;         ///< the launcher's descriptor, 1 or 2
    std::string prefix;     ///< before each line
    job::JobId job = 0;     ///< not 0: to forward, as lines of this job, not to the descriptor
    bool alone = false;     ///< no other rank's lines can be mixed with these: what is no line yet need not wait long
    bool terminal = false;  ///< a terminal of the rank's own, if there is one to be had, so that its output comes line by line
};

/// Reads pipes and hands on whole lines, to the launcher's standard output and error or to who forwards them. Never
/// blocks the loop on a slow reader: it stops reading the ranks' pipes instead, so they wait as they would have
/// without it. What is no line yet goes out when no more comes for a moment, as a prompt has to, and a line that is overwritten by
/// a carriage return counts as one.
class OutputTagger {
  public:
    /// `name`: how its complaints on standard error begin; empty: it makes none.
    OutputTagger(EventLoop& loop, std::string name);
    OutputTagger(const OutputTagger&) = delete;
    OutputTagger& operator=(const OutputTagger&) = delete;
    ~OutputTagger();

    /// Makes a pipe whose lines take this route. Returns the end to write to, which the caller closes; -1 with errno if there is
    /// no descriptor left.
    int open_pipe(OutputRoute route);

    /// Who sends lines on. What was sent counts as pending until acknowledge().
    std::function<void(job::JobId, int target, std::string lines)> forward;
    void acknowledge(job::JobId job, int target, size_t bytes);

    /// Lines that came from elsewhere, for this process's standard output or error. `written` is called when there is
    /// room for more.
    void write_lines(int target, std::string_view lines, std::function<void()> written);
    /// Called, soon, when lines came from elsewhere for a reader that has gone: their writers can't be told by a closed pipe.
    std::function<void()> on_reader_gone;

    /// Reads what is in the pipes now.
    void read_now();
    /// Calls `done`, now or later, when all that the ranks have written is out, or nobody reads it. To be called when the ranks
    /// are gone: who else still holds a pipe is not waited for.
    void when_written(std::function<void()> done);

    /// Hands on what is in the job's pipes and closes them: its ranks are gone.
    void end_job(job::JobId job);

    /// Writes out what is in the pipes and waits for the reader. Called at the very end.
    void drain();

    /// The launcher's own descriptors have become others.
    void reopen();

    /// What an exit code has to say of output that was lost: 0 if none was.
    int exit_code() const { return exit_code_; }

  private:
    struct Sink {
        int target;
        job::JobId job;             ///< 0: this process's descriptor `target`
        int fd = -1;                ///< that descriptor, or another of the same file that does not block
        bool never_blocks = false;  ///< a file or /dev/null: nobody's lines get between the parts of one write
        size_t pipe_bytes = 0;      ///< so much a pipe holds that does not block; 0: it is none
        std::string pending;
        size_t written = 0;    ///< so much of it
        size_t in_flight = 0;  ///< handed to forward, not acknowledged
        bool waiting = false;  ///< for the reader to take some
        bool paused = false;   ///< the ranks wait
        bool gone = false;     ///< the reader
        bool failed = false;   ///< which has been told
        bool from_elsewhere = false;
        std::vector<std::function<void()>> on_room;
    };
    struct Source {
        int fd;  ///< -1: closed
        Sink* sink;
        OutputRoute route;
        std::string line;                 ///< begun, not ended yet
        EventLoop::TimerId patience = 0;  ///< after which an unfinished line goes out
        EventLoop::Clock::time_point last_text{};
        uint64_t bytes = 0;  ///< that came in all
    };

    void on_readable(Source& source);
    bool read_some(Source& source, size_t& bytes);
    void take_rest(Source& source);
    void add_text(Source& source, std::string_view text);
    void add_tagged(Source& source, std::string_view text);
    void hand_on_unfinished(Source& source);
    void end(Source& source);
    void close_source(Source& source);
    void forget_closed();
    void open_sink(Sink& sink);
    void flush(Sink& sink, bool may_block);
    void write_out(Sink& sink, bool may_block);
    static size_t piece(const Sink& sink);
    bool write_piece(Sink& sink);
    void lose(Sink& sink, int error);
    void tell_reader_gone();
    void regulate(Sink& sink);
    bool all_written() const;
    void check_written();
    Sink& sink(int target, job::JobId job);

    EventLoop& loop_;
    std::string name_;
    std::list<Source> sources_;
    std::map<std::pair<job::JobId, int>, Sink> sinks_;
    std::vector<char> buffer_;
    std::function<void()> when_written_;
    bool checking_ = false;
    bool told_gone_ = false;
    int exit_code_ = 0;
};

/// Whether nobody will ever see what is written to the launcher's descriptor: it is /dev/null.
bool leads_nowhere(int target);

/// Whether standard output and error lead to the same place, so that one pipe for both keeps what a rank prints in order.
bool output_and_error_are_one();

}  // namespace starling::launch
