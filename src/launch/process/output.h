// Collects the output of ranks in whole lines. The lines go to the launcher's own descriptors, with the rank in front with --tag-output, or
// to the host where mpiexec runs.
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
#include "launch/common/output_style.h"

namespace starling::launch {

/// The destination of a rank's output.
struct OutputRoute {
    int target = 1;          ///< descriptor of the launcher, 1 or 2
    std::string prefix;      ///< text that is put in front of each line
    job::JobId job = 0;      ///< not 0: forward the lines as output of this job, instead of writing to `target`
    bool alone = false;      ///< true: no other rank writes here, so an unfinished line is passed on earlier
    bool timestamp = false;  ///< true: the time is put in front of each line, before `prefix`
    std::string file;        ///< path of a file that gets the lines too; empty: none
    bool only_file = false;  ///< true: the lines go to `file` only
    bool terminal = false;   ///< true: the rank gets a pseudo-terminal, if available, so that it writes line by line
};

/// Reads pipes and passes on whole lines: to the launcher's standard output and error, or to `forward`. Never blocks the loop on a slow
/// reader. Instead, it stops reading the ranks' pipes, so the ranks block as they would with a pipe to that reader. An unfinished line is
/// passed on after a short silence, because it may be a prompt. A line that a carriage return overwrites counts as a line.
class OutputTagger {
  public:
    /// `name`: prefix of error messages, which go to standard error; empty: no error messages.
    OutputTagger(EventLoop& loop, std::string name);
    OutputTagger(const OutputTagger&) = delete;
    OutputTagger& operator=(const OutputTagger&) = delete;
    ~OutputTagger();

    /// Creates a pipe whose lines take this route. Returns the end to write to, which the caller must close; -1 with errno if no descriptor
    /// is left.
    int open_pipe(OutputRoute route);

    /// Opens a file for `stream`, kOutputFile or kErrorFile; its lines come from routes and write_lines() with that target. If both streams have
    /// the same path, they share the file. Returns an empty string, or a sentence that describes the error.
    std::string open_file(int stream, const std::string& path);

    /// Called with a sentence about lost output; null: the sentence goes to standard error.
    std::function<void(const std::string&)> on_problem;
    /// Forwards lines to another host. Their bytes count as pending until acknowledge().
    std::function<void(job::JobId, int target, std::string lines)> forward;
    void acknowledge(job::JobId job, int target, size_t bytes);

    /// Adds a line of the launcher itself to the output of a job that is forwarded.
    void add_line(job::JobId job, int target, const std::string& line);

    /// Writes lines of other hosts to this process's standard output or error. `written` is called when there is room for more.
    void write_lines(int target, std::string_view lines, std::function<void()> written);
    /// Called soon after the reader of this process's output has closed its end while lines of other hosts were written. The processes that
    /// wrote them cannot notice it by SIGPIPE.
    std::function<void()> on_reader_closed;

    /// Reads all data that the pipes hold now.
    void read_now();
    /// Calls `done`, now or later, when all output of the ranks is written or has no reader. To be called when the ranks have ended; other
    /// processes that still hold a pipe open are not waited for.
    void when_written(std::function<void()> done);

    /// Lets output be lost that its reader does not take for two seconds, with one sentence: the user has asked the processes to end, and
    /// neither they nor this process must wait for such a reader. Holds for `time`, and longer if when_written() waits then.
    void lose_unread(std::chrono::seconds time);

    /// Passes on the rest of the output in the job's pipes and closes them, because its ranks have ended.
    void end_job(job::JobId job);

    /// Writes out the rest of the pipes and waits for the reader, for two seconds if it takes nothing. Called last.
    void drain();

    /// Opens the launcher's own descriptors again after they were replaced.
    void reopen();

    /// Returns the exit code for lost output: 0 if none was lost.
    int exit_code() const { return exit_code_; }

  private:
    struct OutputSink {
        int target;
        job::JobId job;             ///< job whose lines are forwarded to its root; 0: lines go to this process's descriptor
        int fd = -1;                ///< descriptor `target`, or a non-blocking one opened on the same file
        bool never_blocks = false;  ///< true: a file or /dev/null, where other writers' lines cannot split one write
        size_t pipe_bytes = 0;      ///< capacity of a non-blocking pipe; 0: not such a pipe
        std::string pending;
        size_t written = 0;                            ///< number of bytes of `pending` that are written
        size_t in_flight = 0;                          ///< bytes passed to `forward` and not acknowledged
        bool waiting = false;                          ///< true: waits until the reader takes data
        bool paused = false;                           ///< true: the pipes of the ranks are not read
        bool reader_closed = false;                    ///< true: the reader has closed its end
        bool unread = false;                           ///< true: text that can't be written at once is lost (lose_unread)
        EventLoop::Clock::time_point stalled_since{};  ///< when the reader took text for the last time; valid while `waiting`
        bool failed = false;                           ///< true: a write error was reported, and is not reported again
        bool from_elsewhere = false;
        std::string path;  ///< path of the file; empty: `target` is a descriptor of this process
        std::vector<std::function<void()>> on_room;
    };
    struct OutputSource {
        int fd;  ///< descriptor of the pipe's read end; -1: closed
        OutputSink* sink;
        OutputRoute route;
        OutputSink* copy = nullptr;       ///< where the lines go in addition to `sink`; null: nowhere
        std::string line;                 ///< text of the line that is not finished yet
        EventLoop::TimerId patience = 0;  ///< timer after which an unfinished line is passed on
        EventLoop::Clock::time_point last_text{};
        uint64_t bytes = 0;     ///< total number of bytes read from the pipe
        bool was_full = false;  ///< true: the pipe was full once
    };

    void on_readable(OutputSource& source);
    bool read_some(OutputSource& source, size_t& bytes);
    void enlarge_pipe(const OutputSource& source);
    void read_rest(OutputSource& source);
    void add_text(OutputSource& source, std::string_view text);
    void add_tagged(OutputSource& source, std::string_view text);
    void pass_unfinished(OutputSource& source);
    void end(OutputSource& source);
    void close_source(OutputSource& source);
    void forget_closed();
    void open_sink(OutputSink& sink);
    static void classify(OutputSink& sink);
    void put(const OutputSource& source, std::string_view text);
    void flush(OutputSink& sink, bool may_block);
    void flush(const OutputSource& source, bool may_block);
    static bool is_paused(const OutputSource& source) { return source.sink->paused || (source.copy && source.copy->paused); }
    OutputSink* file_sink(const std::string& path);
    void close_unused_files();
    void report(const std::string& sentence);
    void write_out(OutputSink& sink, bool may_block);
    static bool enlarge_pipe(OutputSink& sink);
    static size_t chunk_size(OutputSink& sink);
    bool write_chunk(OutputSink& sink);
    void lose(OutputSink& sink, int error);
    void lose_rest(const OutputSource& source, int error);
    void discard_unread(OutputSink& sink);
    void check_readers();
    void report_reader_closed();
    void regulate(OutputSink& sink);
    bool all_written() const;
    void check_written();
    OutputSink& sink(int target, job::JobId job);

    EventLoop& loop_;
    std::string name_;
    std::list<OutputSource> sources_;
    std::map<std::pair<job::JobId, int>, OutputSink> sinks_;
    std::map<int, int> streams_;  ///< by stream that has a file (open_file): target of the sink
    std::vector<char> buffer_;
    std::function<void()> when_written_;
    int next_file_;  ///< target of the next file that this process writes for single ranks
    EventLoop::Clock::time_point unread_from_{}, unread_until_{};  ///< time of lose_unread()
    EventLoop::TimerId unread_timer_ = 0;
    bool checking_ = false;
    bool reported_closed_ = false;
    int exit_code_ = 0;
};

/// Returns whether the launcher's descriptor is /dev/null, so that the output cannot be read anywhere.
bool leads_nowhere(int target);

/// Opens the files that this process writes for all ranks. Returns an empty string, or a sentence that describes the error.
std::string open_output_files(OutputTagger& output, const OutputStyle& style);

/// Returns whether standard output and error are the same file, so that one pipe for both keeps a rank's output in order.
bool output_and_error_are_one();

}  // namespace starling::launch
