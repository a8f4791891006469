// The functions of Launcher that start jobs.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/config.h"
#include "base/error.h"
#include "job/environment.h"
#include "job/places.h"
#include "launch/process/control_server.h"
#include "launch/process/foreign_mpi_check.h"
#include "launch/process/input.h"
#include "launch/process/launcher.h"
#include "launch/process/library_choice.h"
#include "launch/process/output.h"
#include "launch/process/process_environment.h"
#include "mpi.h"

namespace starling::launch {

namespace {

// Finds the executable file for each rank in turn. Ranks of one program are consecutive, so the result for one is reused for the next.
class ProgramFiles {
  public:
    ProgramFiles(const JobSpec& spec, const JobPart& part, const JobNumbers& numbers, const std::string& address,
                 const std::string& mark)
        : spec_(spec), part_(part), numbers_(numbers), address_(address), mark_(mark) {}

    struct ProgramFile {
        ProcessEnvironment environment;
        std::string path;     ///< path of the program; empty: not found
        std::string problem;  ///< reason why its processes could not communicate; empty: they can
        std::vector<char*> argv;
    };

    /// Returns the index of the program that a rank runs, and sets `which` to the process's number within it.
    size_t index_of(uint32_t rank, uint32_t& which) {
        while (rank < first_) first_ -= spec_.programs[--index_].count;
        while (rank >= first_ + spec_.programs[index_].count) first_ += spec_.programs[index_++].count;
        which = rank - first_;
        return index_;
    }

    ProgramFile& file(size_t index) {
        files_.resize(spec_.programs.size());
        if (!files_[index]) files_[index] = find(spec_.programs[index]);
        return *files_[index];
    }

  private:
    std::unique_ptr<ProgramFile> find(const Program& program) const {
        static char* const empty[] = {nullptr};
        char* const* base = part_.whole_environment ? empty : environ;
        std::unique_ptr<ProgramFile> file(
            new ProgramFile{ProcessEnvironment(program, base, part_.environment, address_, mark_), {}, {}, {}});
        std::string_view path = program.search_path;
        if (path.empty()) path = file->environment.value("PATH");
        if (path.empty()) path = "/usr/local/bin:/usr/bin:/bin";
        file->path = find_program(program.argv[0], path, program.directory);
        file->argv = c_strings(program.argv);
        const bool relative = file->path[0] != '/' && !program.directory.empty();
        const std::string whole_path = relative ? program.directory + "/" + file->path : file->path;
        const bool alone = spec_.size() == 1 && spec_.parent == 0;
        const LibraryChoice choice = choose_libraries({program.argv[0], whole_path, alone}, file->environment);
        file->problem = choice.problem;
        file->environment.add_numbers(numbers_, choice.names);
        return file;
    }

    const JobSpec& spec_;
    const JobPart& part_;
    const JobNumbers numbers_;
    const std::string& address_;
    const std::string& mark_;
    size_t index_ = 0;
    uint32_t first_ = 0;
    std::vector<std::unique_ptr<ProgramFile>> files_;
};

/// Stores the words of a command as ps shows them, shortened to the buffer.
template <size_t kSize>
void store_command(const std::vector<std::string>& words, char (&command)[kSize]) {
    std::string line;
    for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
    constexpr std::string_view kMore = "...";
    if (line.size() >= kSize) line.replace(kSize - 1 - kMore.size(), std::string::npos, kMore);
    std::snprintf(command, kSize, "%s", line.c_str());
}

}  // namespace

void Launcher::describe(LocalJob& job, const JobSpec& spec) const {
    job.ranks.resize(job.segment.header().local_ranks);
    job::JobHeader& header = job.segment.header();
    std::snprintf(header.control_socket, sizeof header.control_socket, "%s", control_->name().c_str());
    store_command(spec.programs[0].argv, header.command);
    for (const Program& program : spec.programs) job.programs.push_back(program.command());
}

// Reports the progress of a long start on a terminal.
void Launcher::report_start(const LocalJob& job, uint32_t started, EventLoop::Clock::time_point& silent_since) {
    constexpr std::chrono::milliseconds kSilence{2000};
    if (EventLoop::Clock::now() - silent_since < kSilence || job.style.capture || !isatty(2)) return;
    silent_since = EventLoop::Clock::now();
    print("starting: %u of %zu processes have started", started, job.ranks.size());
}

bool Launcher::launch_all(LocalJob& job, const JobSpec& spec, const JobPart& part, StartOutcome& outcome) {
    const std::string address = job::to_string(job.segment.address());
    const job::JobHeader& header = job.segment.header();
    ProgramFiles files(spec, part, {header.size, header.local_ranks, header.my_host}, address, mark_);
    count_cores(job);
    auto silent_since = EventLoop::Clock::now();
    for (uint32_t local = 0; local < job.ranks.size(); ++local) {
        report_start(job, local, silent_since);
        const uint32_t rank = job.rank_of(local);
        uint32_t which = 0;
        const size_t index = files.index_of(rank, which);
        const Program& program = spec.programs[index];
        ProgramFiles::ProgramFile& file = files.file(index);
        ProcessStart start;
        start.path = file.path.empty() ? nullptr : file.path.c_str();
        start.argv = file.argv.data();
        start.envp = file.environment.for_rank(rank, local);
        start.directory = program.directory.empty() ? nullptr : program.directory.c_str();
        start.signals = &original_mask_;
        start.descriptors = descriptors_raised_ ? &original_descriptors_ : nullptr;
        job.segment.cell(rank).appnum = program.appnum;
        outcome.text = file.problem;
        if (outcome.text.empty()) {
            const StartedProcess process = launch_one(job, rank, start, spec);
            if (process.pid > 0) continue;
            outcome.text = start_failure(program.argv[0], program.directory, process);
            outcome.cannot_run = process.file.empty();
        }
        outcome.error_class = MPI_ERR_SPAWN;
        outcome.failed_program = index;
        outcome.failed_index = which;
        undo_start(job);
        return false;
    }
    if (spec.forward_input && input_) input_->resume();
    if (spec.size() > 1 && !job.ranks.empty() && !allows_singletons(files.file(0).environment))
        watch_for_other_library(job.id(), kFirstLook);
    return true;
}

StartedProcess Launcher::launch_one(LocalJob& job, uint32_t rank, ProcessStart start, const JobSpec& spec) {
    StartedProcess process;
    if (!start.path) {
        process.step = "find";
        return process;
    }
    if (null_input_ < 0) null_input_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
    start.input = null_input_;
    int ours[3] = {-1, -1, -1};  // the launcher's ends of the rank's three pipes
    process.step = "pipe";
    if (spec.forward_input && spec.input.contains(rank)) start.input = open_input(job, rank, spec.input.is_single(), ours[0]);
    const bool has_input = start.input >= 0;
    std::string file;
    const bool has_output = has_input && open_output(job, rank, start, ours, file);
    if (!has_output) process.error = errno;
    if (!has_input) process.step = "input";
    if (!has_output && has_input) process.file = std::move(file);
    StartCores cores;
    assign_cores(job, rank, cores, start);
    if (has_output) {
        start.guard_slot = guard_.acquire_slot();
        process = start_process(start);
    }
    for (const int fd : ours) {
        if (fd >= 0) close(fd);
    }
    if (process.error != 0) {
        int status = 0;
        if (process.pid > 0) reap_process(process.pid, status);
        if (start.guard_slot) guard_.release_slot(start.guard_slot);
        process.pid = -1;
        job.segment.cell(rank).state.store(job::RankState::not_started, std::memory_order_relaxed);
        return process;
    }
    if (const uint32_t word = start.place ? start.place->load() & job::CpuLocation::kCpu : job::CpuLocation::kNowhere)
        use_->add(word - 1);
    // The program may already have stored its own pid, which differs from this one under a wrapper.
    int32_t none = 0;
    job.segment.cell(rank).pid.compare_exchange_strong(none, process.pid, std::memory_order_relaxed);
    LocalRank& record = job.at(rank);
    record.pid = process.pid;
    record.running = true;
    record.guard_slot = start.guard_slot;
    running_[process.pid] = {&job, rank};
    ++job.running;
    if (job.style.report_bindings) report_binding(job, rank);
    return process;
}

// Chooses where the lines of a stream, 1 or 2, go.
OutputRoute Launcher::route_of(const LocalJob& job, uint32_t rank, int stream) const {
    const JobStyle& style = job.style;
    const job::JobHeader& header = job.segment.header();
    const PatternValues values{rank, header.size, job.number, header.my_host, job.segment.host(header.my_host).name};
    OutputRoute route;
    route.target = stream;
    route.alone = header.size == 1 && job.number == 0;
    route.job = style.capture ? job.id() : 0;
    route.timestamp = style.output.timestamp;
    route.prefix = expand_pattern(style.output.prefix, values);
    if (style.tag_output && route.prefix.empty())
        route.prefix = "[" + (job.number > 0 ? std::to_string(job.number) + ":" : "") + std::to_string(rank) + "] ";
    const std::string& pattern = stream == 1 ? style.output.output_file : style.output.error_file;
    if (pattern.empty()) return route;
    if (is_shared(pattern)) {
        route.target = stream == 1 ? kOutputFile : kErrorFile;
    } else {
        route.file = expand_pattern(pattern, values);
        route.only_file = style.output.only_files;
    }
    return route;
}

// Opens the output of a rank. A single process gets the launcher's own descriptors. With several, pipes keep each line whole, however it is
// written. Returns false, with errno and the path of the output file in `file`, if that cannot be opened, and with an empty path if no
// descriptor is left.
bool Launcher::open_output(const LocalJob& job, uint32_t rank, ProcessStart& start, int (&ours)[3], std::string& file) {
    const JobStyle& style = job.style;
    const bool must = style.tag_output || style.capture || style.output != OutputStyle{};
    start.keeps_writing = isatty(1) || isatty(2);
    if (!must && job.segment.header().size == 1 && job.number == 0) return true;
    const bool one = style.output.merged || (!must && output_and_error_are_one());
    for (int target = 1; target <= (one ? 1 : 2); ++target) {
        OutputRoute route = route_of(job, rank, target);
        route.terminal = !must && isatty(target);
        file = route.file;
        if (!must && leads_nowhere(target)) continue;  // lines written to /dev/null need no pipe that keeps them whole
        ours[target] = output().open_pipe(std::move(route));
        if (must && ours[target] < 0) return false;
    }
    // If no descriptor is left for a pipe, the rank writes directly: torn lines are better than none.
    start.output = ours[1];
    start.error = one ? ours[1] : ours[2];
    return true;
}

// Opens the standard input of a rank. `alone`: no other rank receives the input, so the rank may read this process's own.
int Launcher::open_input(LocalJob& job, uint32_t rank, bool alone, int& pipe_end) {
    if (job.style.capture || !alone) {
        const job::JobId id = job.id();
        std::unique_ptr<InputFan>& pipes = input_pipes_[id];
        if (!pipes) {
            pipes = std::make_unique<InputFan>(loop_, [this, id] {
                if (on_input_read) on_input_read(id);
            });
        }
        return pipe_end = pipes->open_pipe(rank);
    }
    input_rank_ = rank;
    if (!isatty(0)) return 0;
    input_ = std::make_unique<InputForwarder>(loop_);
    return pipe_end = input_->open_pipe();
}

void Launcher::undo_start(LocalJob& job) {
    for (LocalRank& rank : job.ranks) {
        release_processors(rank);
        if (!rank.running) continue;
        kill(-rank.pid, SIGKILL);
        int status = 0;
        reap_process(rank.pid, status);
        running_.erase(rank.pid);
        rank.running = false;
        --job.running;
        release_guard(rank);
    }
    input_pipes_.erase(job.id());
    if (output_ && job.style.capture) output_->end_job(job.id());
}

}  // namespace starling::launch
