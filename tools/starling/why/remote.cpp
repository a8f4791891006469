#include "starling/why/remote.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

namespace starling::hang {

namespace {

using Json = nlohmann::json;

std::string printable(const std::string& text) { return job::printable(text.data(), text.size()); }

std::string to_hex(const std::string& bytes) {
    std::string out;
    for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return out;
}

std::string from_hex(const std::string& text) {
    std::string bytes;
    for (size_t i = 0; i + 1 < text.size(); i += 2) bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
    return bytes;
}

Json json_of(const RankReport& rank, const std::string& account, uint64_t time) {
    return {{"rank", rank.process.rank},       {"host", rank.host},       {"pid", rank.pid},
            {"doing", name(rank.doing)},       {"cores", rank.cores},     {"since_wait", rank.since_wait},
            {"since_start", rank.since_start}, {"garbled", rank.garbled}, {"time", time},
            {"account", to_hex(account)}};
}

Doing doing_of(const std::string& text) {
    for (int i = 0; i <= static_cast<int>(kLastDoing); ++i)
        if (text == name(static_cast<Doing>(i))) return static_cast<Doing>(i);
    throw std::invalid_argument(text);
}

RankReport rank_of(const Json& from, uint64_t job) {
    RankReport rank;
    rank.process = {job, from.at("rank")};
    rank.host = printable(from.at("host"));
    rank.pid = from.at("pid");
    rank.doing = doing_of(from.at("doing"));
    rank.cores = from.at("cores");
    rank.since_wait = from.at("since_wait");
    rank.since_start = from.at("since_start");
    rank.garbled = from.at("garbled");
    const std::string bytes = from_hex(from.at("account"));
    WaitReportPage account;
    if (bytes.empty()) return rank;
    if (bytes.size() == sizeof account) {
        std::memcpy(&account, bytes.data(), sizeof account);
        rank.report = check(account, from.at("time"));
    }
    rank.garbled = !rank.report;
    return rank;
}

}  // namespace

std::string to_line(const std::vector<JobReport>& jobs) {
    Json out{{"why", Json::array()}};
    for (const JobReport& job : jobs) {
        Json entry{{"id", fmt::format("{:016x}", job.id)},
                   {"command", job.command},
                   {"size", job.size},
                   {"stacks", job.stacks},
                   {"ranks", Json::array()}};
        for (size_t i = 0; i < job.ranks.size(); ++i)
            entry["ranks"].push_back(json_of(job.ranks[i], job.accounts[i], job.times[i]));
        out["why"].push_back(std::move(entry));
    }
    return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool from_line(const std::string& line, std::vector<JobReport>& jobs) {
    try {
        std::vector<JobReport> read;
        const Json all = Json::parse(line);
        for (const Json& from : all.at("why")) {
            JobReport& job = read.emplace_back();
            job.id = std::stoull(from.at("id").get<std::string>(), nullptr, 16);
            job.command = printable(from.at("command"));
            job.size = from.at("size");
            std::istringstream stacks(from.at("stacks").get<std::string>());
            for (std::string text; std::getline(stacks, text);) job.stacks += printable(text) + "\n";
            for (const Json& rank : from.at("ranks")) job.ranks.push_back(rank_of(rank, job.id));
        }
        merge(jobs, std::move(read));
        return true;
    } catch (const std::exception&) {  // thrown by the JSON library, or for an invalid number
        return false;
    }
}

void merge(std::vector<JobReport>& jobs, std::vector<JobReport> more) {
    for (JobReport& job : more) {
        const auto known = std::find_if(jobs.begin(), jobs.end(), [&](const JobReport& other) { return other.id == job.id; });
        if (known == jobs.end()) {
            jobs.push_back(std::move(job));
            continue;
        }
        for (RankReport& rank : job.ranks) {
            const bool seen = std::any_of(known->ranks.begin(), known->ranks.end(),
                                          [&](const RankReport& r) { return r.process == rank.process; });
            if (!seen) known->ranks.push_back(std::move(rank));
        }
        known->stacks += job.stacks;
        known->other_hosts.insert(known->other_hosts.end(), job.other_hosts.begin(), job.other_hosts.end());
    }
}

}  // namespace starling::hang
