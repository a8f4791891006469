#include "povray.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace farm {

double now() {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

std::vector<char> Job::pack() const {
    std::string text = scene + '\0' + std::to_string(width) + '\0' + std::to_string(height) + '\0';
    for (const auto& option : options) text += option + '\0';
    return {text.begin(), text.end()};
}

Job Job::unpack(const std::vector<char>& bytes) {
    std::vector<std::string> words;
    std::string word;
    for (char c : bytes) {
        if (c) {
            word += c;
        } else {
            words.push_back(std::exchange(word, {}));
        }
    }
    words.resize(std::max<size_t>(words.size(), 3));
    return {words[0], atoi(words[1].c_str()), atoi(words[2].c_str()), {words.begin() + 3, words.end()}};
}

Povray::Povray(Povray&& other) noexcept
    : tile_(other.tile_),
      pid_(std::exchange(other.pid_, -1)),
      output_(std::exchange(other.output_, -1)),
      messages_(std::exchange(other.messages_, -1)),
      started_(other.started_),
      error_(std::move(other.error_)) {}

Povray::~Povray() {
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    if (output_ >= 0) close(output_);
    if (messages_ >= 0) close(messages_);
}

namespace {

std::vector<std::string> command(const Job& job, const Tile& tile, int threads) {
    std::vector<std::string> words = {"povray",
                                      "+I" + job.scene,
                                      "+W" + std::to_string(job.width),
                                      "+H" + std::to_string(job.height),
                                      "+SC" + std::to_string(tile.x + 1),
                                      "+EC" + std::to_string(tile.x + tile.width),
                                      "+SR" + std::to_string(tile.y + 1),
                                      "+ER" + std::to_string(tile.y + tile.height),
                                      "+WT" + std::to_string(threads),
                                      "+FP",  // picture format PPM
                                      "+O-",  // output to standard output
                                      "-D",   // no window
                                      "-V",   // no progress
                                      "-J",   // no jitter in anti-aliasing
                                      "-A"};
    words.insert(words.end(), job.options.begin(), job.options.end());
    return words;
}

// Runs in the child, between fork and exec, so only async-signal-safe calls are allowed.
[[noreturn]] void become_povray(char** words, pid_t parent, int output, int messages) {
    // If this worker ends for any reason, SIGKILL included, its povray ends too. If the parent has ended already, the child exits.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, 0);
    dup2(output, 1);
    dup2(messages, 2);
    close_range(3, ~0U, 0);
    execvp(words[0], words);
    dprintf(2, "can't start %s: %s (Debian's package is called povray)\n", words[0], strerror(errno));
    _exit(127);
}

std::vector<uint8_t> read_all(int fd) {
    std::vector<uint8_t> bytes;
    size_t used = 0;
    for (;;) {
        if (bytes.size() - used < 65536) bytes.resize(bytes.size() * 2 + 65536);
        const ssize_t got = read(fd, bytes.data() + used, bytes.size() - used);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        used += size_t(got);
    }
    bytes.resize(used);
    return bytes;
}

std::string last_lines(int fd, size_t limit) {
    lseek(fd, 0, SEEK_SET);
    const auto bytes = read_all(fd);
    const std::string text(bytes.begin(), bytes.end());
    return text.size() <= limit ? text : "... " + text.substr(text.size() - limit);
}

double seconds(const timeval& time) { return double(time.tv_sec) + 1e-6 * double(time.tv_usec); }

}  // namespace

bool Povray::start(const Job& job, const Tile& tile, int threads) {
    tile_ = tile;
    started_ = now();
    int ends[2];
    messages_ = memfd_create("povray messages", MFD_CLOEXEC);
    if (messages_ < 0 || pipe2(ends, O_CLOEXEC) != 0) {
        error_ = std::string("can't make a pipe for povray: ") + strerror(errno);
        return false;
    }
    output_ = ends[0];
    const auto words = command(job, tile, threads);
    std::vector<char*> pointers;
    for (const auto& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    const pid_t self = getpid();
    pid_ = fork();
    if (pid_ == 0) become_povray(pointers.data(), self, ends[1], messages_);
    close(ends[1]);
    if (pid_ < 0) error_ = std::string("can't start a process for povray: ") + strerror(errno);
    return pid_ > 0;
}

bool Povray::finish(std::vector<uint8_t>* pixels, Cost* cost) {
    const auto file = read_all(output_);
    int status = 0;
    rusage usage{};
    while (wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {}
    pid_ = -1;
    cost->wall = now() - started_;
    cost->cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    if (WIFSIGNALED(status)) {
        error_ = std::string("povray was ended by signal ") + strsignal(WTERMSIG(status));
        return false;
    }
    Picture picture(0, 0);
    if (WEXITSTATUS(status) != 0 || !parse_ppm(file, &picture)) {
        error_ = "povray failed (exit code " + std::to_string(WEXITSTATUS(status)) + "):\n" + last_lines(messages_, 1500);
        return false;
    }
    *pixels = picture.copy(tile_);
    return true;
}

}  // namespace farm
