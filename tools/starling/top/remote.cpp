#include "starling/top/remote.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/counters.h"
#include "launch/common/text.h"

namespace starling::top {

namespace {

using Json = nlohmann::json;

std::string printable(const std::string& text) { return job::printable(text.data(), text.size()); }

Doing doing_of(const std::string& text) {
    for (int i = 0; i <= static_cast<int>(Doing::not_started); ++i)
        if (text == name(static_cast<Doing>(i))) return static_cast<Doing>(i);
    return Doing::starting;
}

RankView rank_of(const Json& from) {
    RankView rank;
    rank.rank = from.at("rank");
    rank.pid = from.at("pid");
    rank.host = printable(from.at("host"));
    rank.core = from.value("core", job::kNotBound);
    rank.doing = doing_of(from.at("state"));
    rank.waiting = from.at("waiting");
    rank.asleep = from.at("asleep");
    rank.cores = from.value("cores", 0.0);
    rank.memory_kb = from.value("memory_kb", uint64_t{0});
    rank.call = printable(from.value("call", ""));
    rank.phase = printable(from.value("phase", ""));
    rank.counted = from.contains("counters");
    if (!rank.counted) return rank;
    // Find counters by name: the other host's table may be of another version.
    size_t count = 0;
    const Counter* rows = counter_table(count);
    for (size_t i = 0; i < count; ++i) {
        rank.values.push_back(from.at("counters").value(rows[i].name, uint64_t{0}));
        rank.rates.push_back(from.at("per_second").value(rows[i].name, 0.0));
    }
    return rank;
}

JobView job_of(const Json& from) {
    JobView job;
    job.id = std::stoull(from.at("id").get<std::string>(), nullptr, 16);
    job.command = printable(from.at("command"));
    job.host = printable(from.at("host"));
    job.state = printable(from.at("state"));
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
    } catch (const std::exception&) {  // thrown by the JSON library, or for an invalid number
        return false;
    }
}

RemoteHosts::RemoteHosts(double interval, const std::string& filter, bool all_users)
    : agents_([&] {
          std::vector<std::string> words{"top", "--json", "--interval", fmt::format("{:g}", interval)};
          if (all_users) words.push_back("--all-users");
          if (!filter.empty()) words.push_back(launch::shell_word(filter));
          return words;
      }()) {}

void RemoteHosts::add_to(std::vector<JobView>& jobs) {
    agents_.read([this](const std::string& host, const std::string& line) { return parse(line, jobs_[host]); });
    std::erase_if(jobs_, [this](const auto& entry) { return agents_.silent(entry.first); });
    for (const auto& [host, there] : jobs_)
        for (const JobView& job : there) merge(jobs, job);
}

}  // namespace starling::top
