#include "starling/why/json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "hang/judge.h"

namespace starling::hang {

namespace {

using Json = nlohmann::json;
using OperationKind = WaitReportPage::OperationKind;

const char* name(OperationKind kind) {
    switch (kind) {
        case OperationKind::receive:
            return "receive";
        case OperationKind::probe:
            return "probe";
        case OperationKind::send:
            return "send";
        case OperationKind::arriving:
            return "arriving";
        case OperationKind::member:
            return "member";
        case OperationKind::access:
            return "access";
        case OperationKind::memory:
            return "memory";
        case OperationKind::lock:
            return "lock";
        case OperationKind::message:
            break;
    }
    return "message";
}

Json process_json(const ProcessName& process, uint64_t home) {
    if (process.job == home) return process.rank;
    return {{"job", fmt::format("{:016x}", process.job)}, {"rank", process.rank}};
}

Json communicator(const WaitReport& report, int index) {
    if (index < 0) return nullptr;
    const Communicator& of = report.communicators[static_cast<size_t>(index)];
    return {{"name", of.name}, {"context", fmt::format("{:x}", of.context >> 4)}, {"size", of.size}, {"rank", of.rank}};
}

/// Null stands for any peer and any tag.
Json json_of(const WaitReport& report, const PendingOperation& operation, uint64_t home) {
    Json out{{"kind", name(operation.kind)},
             {"peer", nullptr},
             {"tag", nullptr},
             {"communicator", communicator(report, operation.communicator)},
             {"bytes", operation.bytes}};
    if (!operation.from_anyone) out["peer"] = process_json(operation.peer, home);
    if (!operation.any_tag && !operation.of_collective && operation.kind < OperationKind::member) out["tag"] = operation.tag;
    return out;
}

Json list_of(const WaitReport& report, const PendingOperations& operations, uint64_t home) {
    Json list = Json::array();
    for (const PendingOperation& operation : operations.list) list.push_back(json_of(report, operation, home));
    return list;
}

Json json_of(const RankReport& rank, const ThreadWait& wait, const CollectiveCalls& collectives, uint64_t home) {
    const WaitReport& report = *rank.report;
    Json out{{"call", wait.call}, {"seconds", wait.seconds}, {"any", wait.any}, {"for", list_of(report, wait.waited, home)}};
    if (!wait.collective) return out;
    out["communicator"] = communicator(report, wait.communicator);
    out["collective"] = wait.number;
    out["missing"] = nullptr;
    if (const std::vector<ProcessName>* missing = collectives.missing(rank, wait)) {
        out["missing"] = Json::array();
        for (const ProcessName& member : *missing) out["missing"].push_back(process_json(member, home));
    }
    return out;
}

Json json_of(const RankReport& rank, const CollectiveCalls& collectives, uint64_t home) {
    Json out{{"rank", rank.process.rank},
             {"host", rank.host},
             {"pid", rank.pid},
             {"state", name(rank.doing)},
             {"text", sentence(rank, home, &collectives)},
             {"cores", rank.cores},
             {"waits", Json::array()}};
    if (!rank.report) return out;
    if (rank.doing == Doing::waiting || rank.doing == Doing::stopped)
        for (const ThreadWait& wait : rank.report->waits) out["waits"].push_back(json_of(rank, wait, collectives, home));
    out["messages"] = list_of(*rank.report, rank.report->messages, home);
    return out;
}

Json json_of(const JobReport& job, const Verdict& verdict) {
    const CollectiveCalls collectives(job.ranks);
    Json out{
        {"id", fmt::format("{:016x}", job.id)}, {"command", job.command},  {"size", job.size},      {"stuck", verdict.stuck},
        {"findings", verdict.findings},         {"groups", Json::array()}, {"ranks", Json::array()}};
    for (const RankGroup& group : groups(job.ranks, job.id)) {
        Json ranks = Json::array();
        for (size_t i : group.ranks) ranks.push_back(job.ranks[i].process.rank);
        out["groups"].push_back({{"ranks", ranks}, {"text", group.text}});
    }
    for (const RankReport& rank : job.ranks) out["ranks"].push_back(json_of(rank, collectives, job.id));
    if (!job.stacks.empty()) out["stacks"] = job.stacks;
    return out;
}

}  // namespace

std::string to_json(const std::vector<JobReport>& jobs, const std::vector<Verdict>& verdicts) {
    Json out{{"jobs", Json::array()}};
    for (size_t i = 0; i < jobs.size(); ++i) out["jobs"].push_back(json_of(jobs[i], verdicts[i]));
    return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace starling::hang
