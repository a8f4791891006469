#include "launch/process/hang_report.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <memory>

#include "launch/common/process_start.h"
#include "launch/process/launcher.h"

namespace starling::launch {

namespace {

constexpr std::chrono::seconds kLongestQuestion{25};
constexpr size_t kMostReportText = 1 << 20;

/// Returns the path of the program `starling` next to this program; empty if there is none.
std::string starling_program() {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) return {};
    std::string program(path, static_cast<size_t>(length));
    program.replace(program.rfind('/') + 1, std::string::npos, "starling");
    return access(program.c_str(), X_OK) == 0 ? program : std::string();
}

/// A run of `starling why` in progress.
struct ReportRequest {
    EventLoop& loop;
    std::function<void(const std::string&)> done;
    pid_t pid = -1;
    int fd = -1;
    EventLoop::TimerId timer = 0;
    std::string text;

    void end() {
        loop.cancel(timer);
        loop.forget(fd);
        close(fd);
        fd = -1;
        if (const size_t last = text.rfind('\n'); last + 1 != text.size())
            text.resize(last == std::string::npos ? 0 : last + 1);
        done(text);
    }
};

void read_answer(ReportRequest& question) {
    char buffer[16 << 10];
    ssize_t got;
    while ((got = ::read(question.fd, buffer, sizeof buffer)) > 0)
        if (question.text.size() < kMostReportText) question.text.append(buffer, static_cast<size_t>(got));
    if (got == 0) question.end();
}

}  // namespace

void explain(EventLoop& loop, Launcher& launcher, const std::string& job, ExplainWhen when,
             const std::vector<std::string>& hosts, std::function<void(const std::string&)> done) {
    const std::string program = starling_program();
    std::vector<std::string> words{program, "why", "--quiet-for", std::to_string(when.quiet)};
    if (when.ended_awaited) words.emplace_back("--ended-awaited");
    if (job.empty()) words.insert(words.end(), {"--launcher", std::to_string(getpid())});
    for (const std::string& host : hosts) words.insert(words.end(), {"--host", host});
    if (!job.empty()) words.push_back(job);
    int ends[2];
    if (program.empty() || pipe2(ends, O_CLOEXEC) != 0) return done({});
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const std::vector<char*> argv = c_strings(words);
    ProcessStart start;
    start.path = program.c_str();
    start.argv = argv.data();
    start.envp = environ;
    start.output = ends[1];
    start.error = null;
    const StartedProcess process = start_process(start);
    close(ends[1]);
    close(null);
    if (process.pid > 0) launcher.expect_helper(process.pid, [] {});
    if (process.error != 0) {
        close(ends[0]);
        return done({});
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    auto question = std::make_shared<ReportRequest>(loop, std::move(done), process.pid, ends[0]);
    loop.watch(ends[0], EPOLLIN, [question](uint32_t) { read_answer(*question); });
    question->timer = loop.after(kLongestQuestion, [question] {
        kill(-question->pid, SIGKILL);
        question->end();
    });
}

void report_when_hanging(EventLoop& loop, Launcher& launcher, int seconds, std::function<void(const std::string&)> print) {
    loop.after(std::chrono::seconds(seconds), [&loop, &launcher, seconds, print] {
        explain(loop, launcher, {}, {.quiet = seconds}, {}, [&loop, &launcher, seconds, print](const std::string& text) {
            if (text.empty()) return report_when_hanging(loop, launcher, seconds, print);
            print("no process has made progress for " + std::to_string(seconds) + " s (STARLING_HANG_REPORT):\n" + text);
        });
    });
}

}  // namespace starling::launch
