#include "starling/top/top.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>

#include "base/clock.h"
#include "base/config.h"
#include "base/process.h"
#include "launch/common/text.h"
#include "starling/color.h"
#include "starling/top/pages.h"
#include "starling/top/remote.h"
#include "starling/top/show.h"
#include "starling/top/terminal.h"
#include "starling/top/watch.h"
#include "starling/why/why.h"

namespace starling {

namespace {

/// Number of samples between two updates, unless there are very many processes.
constexpr int kLooks = 100;
constexpr uint64_t kLeastLookNs = 2'000'000, kLookNsPerProcess = 20'000;

constexpr uint64_t kPatienceNs = 20'000'000'000;  ///< time to wait for hosts that have not sent a report yet, in ns

volatile std::sig_atomic_t interrupted = 0, suspended = 0;

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
        top::Terminal terminal;
        terminal_ = &terminal;
        style_.color = terminal.active() && may_color();
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
                for (const top::ListLine& line : top::lines(jobs_, style_)) fmt::print("{}\n", line.text);
            }
            std::fflush(stdout);
            // A job that was named and does not run is a failure, as for `starling why`.
            if (options_.once) return jobs_.empty() && !options_.job.empty() ? report_no_job() : 0;
        } while (!interrupted && !std::ferror(stdout));
        return 0;
    }

    int report_no_job() const {
        fmt::print(stderr, "starling top: no job of yours runs here that is or contains {}\n", launch::printable(options_.job));
        return 1;
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
        const winsize size = top::screen_size();
        style_.width = size.ws_col;
        top::sort_ranks(jobs_, style_);
        select();
        page_ = size.ws_row - 3u;
        const std::vector<std::string> body = page_lines_.empty() ? list_body() : top::wrapped(page_lines_, size.ws_col);
        first_line_ = std::min(first_line_, body.size() > page_ ? body.size() - page_ : 0);
        std::string out = "\033[H";
        const auto put = [&](const std::string& line) { out += line + "\033[K\r\n"; };
        put(title().substr(0, size.ws_col));
        put("");
        for (size_t i = 0; i < page_; ++i) put(first_line_ + i < body.size() ? body[first_line_ + i] : "");
        const size_t below = body.size() > first_line_ + page_ ? body.size() - first_line_ - page_ : 0;
        out += footer(below).substr(0, size.ws_col) + "\033[K";
        std::fwrite(out.data(), 1, out.size(), stdout);
        std::fflush(stdout);
    }

    std::string footer(size_t below) const {
        const std::string more = below ? fmt::format("  ({} lines below)", below) : "";
        if (!page_lines_.empty()) return "any other key: back  space: next page  q: quit" + more;
        return fmt::format("s: sort ({})  w: why  t: {}  j/k: select  ?: help  q: quit{}  every {:g} s", options_.sort,
                           style_.totals ? "rates" : "totals", more, options_.interval);
    }

    /// Finds the selected rank in the latest snapshot; by default the first one.
    void select() {
        style_.selected = nullptr;
        const top::RankView* first = nullptr;
        for (const top::JobView& job : jobs_) {
            for (const top::RankView& rank : job.ranks) {
                if (!first) first = &rank;
                if (job.id == selected_job_ && rank.rank == selected_rank_) style_.selected = &rank;
            }
        }
        if (!style_.selected) style_.selected = first;
    }

    /// Returns the list, and scrolls so that the selected rank is visible.
    std::vector<std::string> list_body() {
        std::vector<std::string> body;
        for (const top::ListLine& line : top::lines(jobs_, style_)) {
            if (line.rank && line.rank == style_.selected) {
                if (body.size() < first_line_ + 2) first_line_ = body.size() > 2 ? body.size() - 2 : 0;  // with its titles
                if (body.size() >= first_line_ + page_) first_line_ = body.size() + 1 - page_;
            }
            body.push_back(line.text);
        }
        if (body.empty()) body.push_back(nothing_runs());
        return body;
    }

    /// Moves the selection by this number of ranks, over all jobs.
    void move(long by) {
        std::vector<std::pair<const top::JobView*, const top::RankView*>> all;
        long at = 0;
        for (const top::JobView& job : jobs_) {
            for (const top::RankView& rank : job.ranks) {
                if (&rank == style_.selected) at = static_cast<long>(all.size());
                all.emplace_back(&job, &rank);
            }
        }
        if (all.empty()) return;
        const auto& [job, rank] = all[static_cast<size_t>(std::clamp(at + by, 0L, static_cast<long>(all.size()) - 1))];
        selected_job_ = job->id;
        selected_rank_ = rank->rank;
    }

    void show_why() {
        for (const top::JobView& job : jobs_) {
            for (const top::RankView& rank : job.ranks) {
                if (&rank != style_.selected) continue;
                WhyOptions why;
                why.job = fmt::format("{:016x}", job.id);
                why.all_users = options_.all_users;
                why.hosts = options_.hosts;
                why.here = !options_.all_hosts && options_.hosts.empty();
                page_lines_ = explain_rank(why, rank.rank);
                page_lines_.insert(page_lines_.begin(), {fmt::format("job {}  {}", why.job, job.command), ""});
            }
        }
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

    /// Handles the keys that have arrived. Returns false for quit.
    bool press_key() {
        char bytes[64];
        const ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
        if (got <= 0) return false;
        std::string_view rest(bytes, static_cast<size_t>(got));
        while (!rest.empty())
            if (!press(top::take_key(rest))) return false;
        draw();
        return true;
    }

    bool press(top::TopKey key) {
        using top::TopKey;
        if (key == TopKey::quit) return false;
        if (page_lines_.empty()) {
            press_in_list(key);
        } else if (key == TopKey::page_down || key == TopKey::down) {
            first_line_ += key == TopKey::down ? 1 : page_;
        } else if (key == TopKey::page_up || key == TopKey::up) {
            first_line_ -= std::min(first_line_, key == TopKey::up ? 1 : page_);
        } else {
            page_lines_.clear();
        }
        return true;
    }

    void press_in_list(top::TopKey key) {
        using top::TopKey;
        const auto page = static_cast<long>(page_);
        constexpr long kAll = 1L << 40;
        switch (key) {
            case TopKey::sort:
                style_.order = static_cast<top::Order>((static_cast<size_t>(style_.order) + 1) % std::size(top::kOrderNames));
                options_.sort = top::kOrderNames[static_cast<size_t>(style_.order)];
                break;
            case TopKey::totals:
                style_.totals = !style_.totals;
                break;
            case TopKey::help:
                page_lines_ = top::help_lines();
                break;
            case TopKey::why:
                show_why();
                break;
            case TopKey::down:
            case TopKey::up:
                move(key == TopKey::down ? 1 : -1);
                break;
            case TopKey::page_down:
            case TopKey::page_up:
                move(key == TopKey::page_down ? page : -page);
                break;
            case TopKey::first:
            case TopKey::last:
                move(key == TopKey::last ? kAll : -kAll);
                break;
            default:
                return;
        }
        if (!page_lines_.empty()) first_line_ = 0;
        select();
    }

    TopOptions options_;
    top::Watch watch_;
    top::RemoteHosts remote_;
    top::Style style_;
    top::Terminal* terminal_ = nullptr;  ///< terminal of the live display; null: updates are printed
    std::vector<top::JobView> jobs_;
    size_t first_line_ = 0, page_ = 10;  ///< first visible line, and number of lines of the screen's body
    job::JobId selected_job_ = 0;
    uint32_t selected_rank_ = 0;
    std::vector<std::string> page_lines_;  ///< page shown instead of the list; empty: none
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
