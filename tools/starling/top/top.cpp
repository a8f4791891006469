#include "starling/top/top.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>

#include "base/clock.h"
#include "base/config.h"
#include "base/process.h"
#include "starling/top/remote.h"
#include "starling/top/show.h"
#include "starling/top/watch.h"

namespace starling {

namespace {

/// Number of samples between two updates, unless there are very many processes.
constexpr int kLooks = 100;
constexpr uint64_t kLeastLookNs = 2'000'000, kLookNsPerProcess = 20'000;

constexpr uint64_t kPatienceNs = 20'000'000'000;  ///< time to wait for hosts that have not sent a report yet, in ns

volatile std::sig_atomic_t interrupted = 0, suspended = 0;

/// The terminal while it shows the jobs: its alternate screen, with keys read one by one. Its former state is restored at the end.
class Terminal {
  public:
    Terminal() : active_(isatty(STDOUT_FILENO) && isatty(STDIN_FILENO)) { take(); }
    ~Terminal() { give_back(); }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;
    bool active() const { return active_; }

    /// Restores the terminal, stops this process, and takes the terminal over again when the process continues.
    void suspend() {
        give_back();
        std::raise(SIGSTOP);
        take();
    }

  private:
    void take() {
        if (!active_ || tcgetattr(STDIN_FILENO, &before_) != 0) return;
        termios raw = before_;
        raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
        std::fputs("\033[?1049h\033[?25l", stdout);
    }
    void give_back() {
        if (!active_) return;
        std::fputs("\033[?25h\033[?1049l", stdout);
        std::fflush(stdout);
        tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    }

    termios before_{};
    bool active_;
};

winsize screen_size() {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 4 || size.ws_col < 20) size = {24, 80, 0, 0};
    return size;
}

std::string clock_text() {
    const time_t now = time(nullptr);
    tm parts;
    char text[16];
    strftime(text, sizeof text, "%H:%M:%S", localtime_r(&now, &parts));
    return text;
}

class Top {
  public:
    explicit Top(const TopOptions& options)
        : options_(options),
          watch_(options.job, options.all_hosts, options.all_users),
          remote_(options.interval, options.job, options.all_users) {
        style_.totals = options.totals;
        const auto* found = std::find(std::begin(top::kOrderNames), std::end(top::kOrderNames), options.sort);
        style_.order = static_cast<top::Order>(found - top::kOrderNames);
    }

    int run() {
        if (options_.once || options_.json || !isatty(STDOUT_FILENO)) return print_pictures();
        Terminal terminal;
        terminal_ = &terminal;
        style_.color = terminal.active();
        take_picture();
        while (!interrupted) {
            draw();
            if (!pass(options_.interval, terminal.active())) break;
            take_picture();
        }
        return 0;
    }

  private:
    void take_picture() {
        watch_.find_jobs();
        jobs_ = watch_.snapshot();
        for (const std::string& host : options_.hosts) remote_.watch(host);
        if (options_.all_hosts) {
            for (const top::JobView& job : jobs_)
                for (const std::string& host : job.other_hosts) remote_.watch(host);
        }
        remote_.add_to(jobs_);
    }

    /// Prints one update after the other as text, for a pipe or a file.
    int print_pictures() {
        take_picture();
        const uint64_t patience = now_ns() + kPatienceNs;
        do {
            if (!pass(options_.interval, false)) break;
            take_picture();
            // With --once, wait until all hosts have reported.
            if (options_.once && !remote_.settled() && now_ns() < patience) continue;
            if (options_.json) {
                fmt::print("{}\n", top::json(jobs_, options_.interval));
            } else {
                top::sort_ranks(jobs_, style_);
                fmt::print("{}\n\n", title());
                for (const std::string& line : top::lines(jobs_, style_)) fmt::print("{}\n", line);
            }
            std::fflush(stdout);
            if (options_.once) break;
        } while (!interrupted && !std::ferror(stdout));
        return 0;
    }

    std::string title() const {
        std::string text = fmt::format("starling top  {}  {} job{}, {} processes here", clock_text(), jobs_.size(),
                                       jobs_.size() == 1 ? "" : "s", watch_.processes());
        if (watch_.unreadable() > 0)
            text += fmt::format("; {} more, damaged or of another version of Starling", watch_.unreadable());
        if (const std::string trouble = remote_.trouble(); !trouble.empty()) text += "; " + trouble;
        return text;
    }

    void draw() {
        const winsize size = screen_size();
        style_.width = size.ws_col;
        top::sort_ranks(jobs_, style_);
        const std::vector<std::string> body = top::lines(jobs_, style_);
        const size_t room = size.ws_row - 3u;
        first_line_ = std::min(first_line_, body.size() > room ? body.size() - room : 0);
        std::string out = "\033[H";
        const auto put = [&](const std::string& line) { out += line + "\033[K\r\n"; };
        put(title().substr(0, size.ws_col));
        put("");
        for (size_t i = 0; i < room; ++i) {
            const size_t at = first_line_ + i;
            put(at < body.size() ? body[at] : body.empty() && i == 0 ? nothing_runs() : "");
        }
        const size_t below = body.size() > first_line_ + room ? body.size() - first_line_ - room : 0;
        out += fmt::format("every {:g} s  s: sort ({})  t: {}  j/k: scroll{}  q: quit", options_.interval, options_.sort,
                           style_.totals ? "rates" : "totals", below ? fmt::format(" ({} lines below)", below) : "")
                   .substr(0, size.ws_col) +
               "\033[K";
        std::fwrite(out.data(), 1, out.size(), stdout);
        std::fflush(stdout);
    }

    std::string nothing_runs() const {
        return options_.job.empty() ? "No job of yours runs on this machine." : "No such job of yours runs on this machine.";
    }

    /// Waits for the interval while it samples the processes and handles keys. Returns false if the program must end.
    bool pass(double seconds, bool keys) {
        const auto interval = static_cast<uint64_t>(seconds * 1e9);
        const uint64_t end = now_ns() + interval;
        const uint64_t step = std::max({interval / kLooks, kLeastLookNs, watch_.processes() * kLookNsPerProcess});
        for (uint64_t now = now_ns(); now < end && !interrupted; now = now_ns()) {
            const uint64_t rest = std::min(step, end - now);
            pollfd input{STDIN_FILENO, POLLIN, 0};
            const timespec limit{static_cast<time_t>(rest / 1'000'000'000), static_cast<long>(rest % 1'000'000'000)};
            if (ppoll(&input, keys ? 1 : 0, &limit, nullptr) > 0 && !press_key()) return false;
            if (suspended != 0) suspend();
            watch_.look();
        }
        return !interrupted;
    }

    void suspend() {
        suspended = 0;
        if (!terminal_) return;
        terminal_->suspend();
        draw();
    }

    /// Handles a key. Returns false for quit.
    bool press_key() {
        char key = 0;
        if (read(STDIN_FILENO, &key, 1) <= 0) return false;
        switch (key) {
            case 'q':
                return false;
            case 's': {
                style_.order = static_cast<top::Order>((static_cast<size_t>(style_.order) + 1) % std::size(top::kOrderNames));
                options_.sort = top::kOrderNames[static_cast<size_t>(style_.order)];
                break;
            }
            case 't':
                style_.totals = !style_.totals;
                break;
            case 'j':
            case 'B':
                ++first_line_;
                break;  // 'B': the last byte of the escape sequence of the down arrow
            case 'k':
            case 'A':
                first_line_ -= first_line_ > 0;
                break;
            case ' ':
                first_line_ += 10;
                break;
            default:
                return true;
        }
        draw();
        return true;
    }

    TopOptions options_;
    top::Watch watch_;
    top::RemoteHosts remote_;
    top::Style style_;
    Terminal* terminal_ = nullptr;  ///< terminal of the live display; null: updates are printed
    std::vector<top::JobView> jobs_;
    size_t first_line_ = 0;
};

}  // namespace

int run_top(const TopOptions& options) {
    read_config(true);
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    // Only the live display handles SIGTSTP; printing is suspended by the default action.
    if (isatty(STDOUT_FILENO) && !options.once && !options.json) {
        action.sa_handler = [](int) { suspended = 1; };
        sigaction(SIGTSTP, &action, nullptr);
    }
    return Top(options).run();
}

}  // namespace starling
