#include "launch/universe/profile_lines.h"

#include <algorithm>
#include <ctime>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/size_classes.h"

namespace starling::launch {

namespace {

using OrderedJson = nlohmann::ordered_json;
using control::ProfileReport;

double seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

/// Names come from the program and may not be valid UTF-8.
void add_line(std::string& lines, const OrderedJson& line) {
    lines += line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
    lines += '\n';
}

template <size_t N>
std::string name_at(const char* const (&names)[N], size_t index) {
    return index < N ? names[index] : "other";
}

constexpr size_t kMostModules = 4096;  ///< limit of the modules of a job
constexpr const char* kMarks[] = {"start", "program", "pcontrol", "found"};
constexpr const char* kCauses[] = {"late sender", "late receiver", "collective", "other"};
static_assert(std::size(kCauses) == ProfileReport::kCauses);

/// Returns runs of consecutive ranks, sorted by first rank: [host, first rank, count].
OrderedJson places_of(const job::JobDescription& job) {
    std::vector<std::array<uint32_t, 3>> runs;
    for (const job::Placement& run : job.placements) {
        if (run.stride == 1 || run.count == 1) {
            runs.push_back({run.host, run.first, run.count});
        } else {
            for (uint32_t i = 0; i < run.count; ++i) runs.push_back({run.host, run.first + i * run.stride, 1});
        }
    }
    std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a[1] < b[1]; });
    return runs;
}

}  // namespace

ProfileLines::ProfiledJob& ProfileLines::know(const job::JobDescription& job, job::JobId parent, std::string& lines) {
    const OrderedJson of_parent = parent ? OrderedJson(number_of(parent, lines)) : OrderedJson();
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    ProfiledJob& known = known_[job.id];
    known.number = static_cast<uint32_t>(known_.size() - 1);
    known.began_ns = static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
    OrderedJson hosts = OrderedJson::array();
    for (const job::HostEntry& host : job.hosts) hosts.push_back(host.name);
    add_line(lines, {{"kind", "job"},
                     {"job", known.number},
                     {"parent", of_parent},
                     {"size", job.size},
                     {"hosts", hosts},
                     {"places", places_of(job)}});
    return known;
}

std::string ProfileLines::begin(const job::JobDescription& job, job::JobId parent) {
    std::string lines;
    if (!known_.contains(job.id)) know(job, parent, lines).finalized.resize(job.size);
    return lines;
}

uint32_t ProfileLines::number_of(job::JobId id, std::string& lines) {
    const auto found = known_.find(id);
    if (found != known_.end()) return found->second.number;
    const job::JobDescription* const job = find_(id);
    job::JobDescription nothing;
    nothing.id = id;
    return know(job ? *job : nothing, 0, lines).number;
}

// Returns a communicator's name. Contexts are numbered from their job's id on, with a separate range for each of its hosts (comm/comm.h:
// make_context). 1 and 2 are the predefined communicators.
std::string ProfileLines::communicator_name(uint64_t context, job::JobId own) const {
    constexpr uint64_t kCircle = (uint64_t{1} << 60) - 1, kPerHost = uint64_t{1} << 40;
    const auto number_in = [&](job::JobId job) { return ((context >> 4) - job) & kCircle; };
    const auto name = [](uint64_t number) {
        return 'c' + std::to_string(number / kPerHost) + '.' + std::to_string(number % kPerHost);
    };
    const uint64_t number = number_in(own);
    if (number == 1) return "world";
    if (number == 2) return "self";
    constexpr uint64_t kMostHosts = 1 << 16;
    if (number / kPerHost < kMostHosts) return name(number);
    for (const auto& [id, job] : known_)
        if (number_in(id) / kPerHost < kMostHosts) return "job " + std::to_string(job.number) + ' ' + name(number_in(id));
    return "c" + std::to_string(number);
}

void ProfileLines::write_phase(const ProfiledJob& job, job::JobId id, uint32_t rank, const ProfileReport::PhaseRecord& phase,
                               std::string& lines) {
    // number_of() may append the line of a job that is new here, which must precede this line.
    OrderedJson peers = OrderedJson::array(), accesses = OrderedJson::array(), collectives = OrderedJson::array(),
                connections = OrderedJson::array(), waits = OrderedJson::object(), waiting = OrderedJson::array();
    for (const ProfileReport::PeerRecord& peer : phase.peers) {
        const uint64_t messages = peer.messages[0] + peer.messages[1] + peer.messages[2];
        if (messages > 0 || !peer.has_accesses())
            peers.push_back({number_of(peer.job, lines), peer.rank, peer.messages[0], peer.bytes[0], peer.messages[1],
                             peer.bytes[1], peer.messages[2], peer.bytes[2], peer.connection_messages, peer.connection_bytes});
        if (peer.has_accesses())
            accesses.push_back({number_of(peer.job, lines), peer.rank, peer.accesses[0], peer.access_bytes[0], peer.accesses[1],
                                peer.access_bytes[1], peer.accesses[2], peer.access_bytes[2], peer.packet_accesses,
                                peer.packet_access_bytes, peer.connection_accesses, peer.connection_access_bytes});
    }
    for (const ProfileReport::Collective& calls : phase.collectives) {
        collectives.push_back({calls.site, communicator_name(calls.communicator, id), calls.size, calls.kind,
                               name_at(kSizeClassNames, calls.size_class), calls.algorithm, calls.calls, calls.bytes,
                               seconds(calls.ns), calls.squares / 1e18, calls.tried});
    }
    for (size_t i = 0; i < ProfileReport::kCauses; ++i) waits[kCauses[i]] = seconds(phase.waits_ns[i]);
    for (const ProfileReport::WaitRecord& wait : phase.waits) {
        OrderedJson row = OrderedJson::array({wait.site, wait.function});
        for (const uint64_t ns : wait.ns) row.push_back(seconds(ns));
        waiting.push_back(std::move(row));
    }
    for (const ProfileReport::ConnectionRecord& connection : phase.connections) {
        connections.push_back({seconds(connection.at_ns), number_of(connection.job, lines), connection.rank,
                               connection.opened ? "opened" : "closed"});
    }
    // Clocks of hosts differ slightly: no phase may begin before its job.
    const uint64_t began = phase.began_ns > job.began_ns ? phase.began_ns - job.began_ns : 0;
    OrderedJson line = {{"kind", "phase"},
                        {"job", job.number},
                        {"rank", rank},
                        {"phase", phase.name},
                        {"from", phase.from},
                        {"to", phase.to},
                        {"mark", name_at(kMarks, phase.mark)},
                        {"began", seconds(began)},
                        {"seconds", seconds(phase.ns)},
                        {"peers", peers},
                        {"collectives", collectives},
                        {"waits", waits},
                        {"waiting", waiting},
                        {"connections", connections}};
    for (const ProfileReport::SizeRecord& size : phase.sizes) line["sizes"].push_back({size.most, size.messages, size.bytes});
    for (const ProfileReport::FileRecord& file : phase.files)
        line["files"].push_back({file.file, file.site, file.function, file.calls, file.bytes, seconds(file.ns)});
    if (!accesses.empty()) line["accesses"] = accesses;  // omitted if empty, as in most programs
    add_line(lines, line);
}

std::string ProfileLines::report(job::JobId id, uint32_t rank, const ProfileReport& report) {
    std::string lines;
    const auto found = known_.find(id);
    if (found == known_.end() || rank >= found->second.finalized.size()) return lines;
    ProfiledJob& job = found->second;  // the reference stays valid when other jobs are added
    for (const ProfileReport::ModuleRecord& module : report.modules) {
        std::string line;
        add_line(line, {{"kind", "module"}, {"name", module.name}, {"path", module.path}, {"build_id", module.build_id}});
        if (job.modules.size() < kMostModules && job.modules.insert(line).second) lines += line;
    }
    for (const ProfileReport::PhaseRecord& phase : report.phases) write_phase(job, id, rank, phase, lines);
    if (!report.last || job.finalized[rank]) return lines;
    job.finalized[rank] = true;
    OrderedJson line = {{"kind", "end"}, {"job", job.number}, {"rank", rank}, {"how", "finalized"}};
    const ProfileReport::CoreRecord& cores = report.cores;
    if (!cores.cpus.empty())
        line["cores"] = {{"cpus", cores.cpus},
                         {"cpu", seconds(cores.cpu_ns)},
                         {"polled", seconds(cores.polled_ns)},
                         {"waited", seconds(cores.waited_ns)}};
    add_line(lines, line);
    return lines;
}

std::string ProfileLines::end(job::JobId id) {
    std::string lines;
    const auto found = known_.find(id);
    if (found == known_.end()) return lines;
    ProfiledJob& job = found->second;
    for (size_t rank = 0; rank < job.finalized.size(); ++rank) {
        if (!job.finalized[rank])
            add_line(lines, {{"kind", "end"}, {"job", job.number}, {"rank", rank}, {"how", "ended early"}});
    }
    job.finalized = {};
    return lines;
}

}  // namespace starling::launch
