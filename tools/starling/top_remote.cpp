#include "top_remote.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/config.h"
#include "base/counters.h"

extern char** environ;

namespace starling::top {

namespace {

using Json = nlohmann::json;

constexpr size_t kMostHosts = 64;  ///< each is an agent's process here

std::string quoted(const std::string& word) {
    std::string out = "'";
    for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

std::vector<std::string> agent_words() {
    if (!config().launcher_agent) return {"ssh", "-x", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"};
    std::istringstream words(config().launcher_agent);
    return {std::istream_iterator<std::string>(words), {}};
}

Doing doing_of(const std::string& text) {
    for (int i = 0; i <= static_cast<int>(Doing::not_started); ++i)
        if (text == name(static_cast<Doing>(i))) return static_cast<Doing>(i);
    return Doing::starting;
}

RankView rank_of(const Json& from) {
    RankView rank;
    rank.rank = from.at("rank");
    rank.pid = from.at("pid");
    rank.host = from.at("host");
    rank.core = from.value("core", boot::kNotBound);
    rank.doing = doing_of(from.at("state"));
    rank.waiting = from.at("waiting");
    rank.asleep = from.at("asleep");
    rank.counted = from.contains("counters");
    if (!rank.counted) return rank;
    // By name: the other host's table may be of another version.
    size_t count = 0;
    const Counter* rows = counter_table(count);
    for (size_t i = 0; i < count; ++i) {
        rank.values.push_back(from["counters"].value(rows[i].name, uint64_t{0}));
        rank.rates.push_back(from["per_second"].value(rows[i].name, 0.0));
    }
    return rank;
}

JobView job_of(const Json& from) {
    JobView job;
    job.id = std::stoull(from.at("id").get<std::string>(), nullptr, 16);
    job.command = from.at("command");
    job.host = from.at("host");
    job.state = from.at("state");
    job.owner_pid = from.at("launcher");
    job.size = from.at("size");
    job.hosts = from.at("hosts");
    job.age = from.at("age_s");
    for (const Json& rank : from.at("ranks")) job.ranks.push_back(rank_of(rank));
    return job;
}

void merge(std::vector<JobView>& jobs, const JobView& more) {
    const auto known = std::find_if(jobs.begin(), jobs.end(), [&](const JobView& job) { return job.id == more.id; });
    if (known == jobs.end()) {
        jobs.push_back(more);
        return;
    }
    for (const RankView& rank : more.ranks) {
        const bool seen = std::any_of(known->ranks.begin(), known->ranks.end(),
                                      [&](const RankView& other) { return other.rank == rank.rank; });
        if (!seen) known->ranks.push_back(rank);
    }
    known->age = std::max(known->age, more.age);
}

}  // namespace

bool parse(const std::string& line, std::vector<JobView>& jobs) {
    try {
        const Json all = Json::parse(line);
        std::vector<JobView> parsed;
        for (const Json& job : all.at("jobs")) parsed.push_back(job_of(job));
        jobs = std::move(parsed);
        return true;
    } catch (const std::exception&) {  // of the JSON library, or a number that is none
        return false;
    }
}

RemoteHosts::~RemoteHosts() {
    for (Host& host : hosts_) {
        if (host.fd >= 0) close(host.fd);
        if (host.agent > 0) kill(host.agent, SIGTERM);
    }
    for (Host& host : hosts_)
        if (host.agent > 0) waitpid(host.agent, nullptr, 0);
}

void RemoteHosts::watch(const std::string& name) {
    const bool known = std::any_of(hosts_.begin(), hosts_.end(), [&](const Host& host) { return host.name == name; });
    // To the agent an option is an option wherever it comes from.
    if (known || name.empty() || name[0] == '-') return;
    if (hosts_.size() == kMostHosts) {
        ++left_out_;
        return;
    }
    Host& host = hosts_.emplace_back();
    host.name = name;
    start(host);
}

void RemoteHosts::start(Host& host) const {
    std::error_code ignored;
    const std::string program = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
    std::vector<std::string> words = agent_words();
    for (const std::string& word : {host.name, quoted(program), std::string("top"), std::string("--json"),
                                    std::string("--interval"), fmt::format("{:g}", interval_)})
        words.push_back(word);
    if (!filter_.empty()) words.push_back(quoted(filter_));
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);

    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        host.complaint = std::strerror(errno);
        return;
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    const int error = posix_spawnp(&host.agent, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    host.fd = ends[0];
    fcntl(host.fd, F_SETFL, O_NONBLOCK);
    if (error == 0) return;
    host.agent = -1;
    host.complaint = fmt::format("{}: {}", arguments[0], std::strerror(error));
}

void RemoteHosts::read_from(Host& host) {
    char buffer[64 << 10];
    ssize_t got = 0;
    while (host.fd >= 0 && (got = read(host.fd, buffer, sizeof buffer)) > 0) {
        host.unread.append(buffer, static_cast<size_t>(got));
        for (size_t end; (end = host.unread.find('\n')) != std::string::npos; host.unread.erase(0, end + 1)) {
            const std::string line = host.unread.substr(0, end);
            const bool heard = parse(line, host.jobs);
            host.heard |= heard;
            if (!heard && !line.empty()) host.complaint = line.substr(0, 120);
        }
    }
    if (host.fd < 0 || got != 0) return;
    close(host.fd);
    host.fd = -1;
    host.jobs.clear();
    if (host.complaint.empty()) host.complaint = "the agent has ended";
}

void RemoteHosts::add_to(std::vector<JobView>& jobs) {
    for (Host& host : hosts_) {
        read_from(host);
        for (const JobView& job : host.jobs) merge(jobs, job);
    }
}

bool RemoteHosts::settled() const {
    return std::all_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.heard || host.fd < 0; });
}

std::string RemoteHosts::trouble() const {
    std::string text;
    for (const Host& host : hosts_)
        if (host.fd < 0) text += (text.empty() ? "" : "; ") + host.name + ": " + host.complaint;
    if (left_out_ > 0) text += fmt::format("{}more than {} other hosts: the rest is left out", text.empty() ? "" : "; ", kMostHosts);
    return text;
}

}  // namespace starling::top
