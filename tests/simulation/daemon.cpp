#include "daemon.h"

#include <arpa/inet.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "control/plan_reply.h"
#include "features.h"
#include "job/environment.h"
#include "mpi.h"
#include "network.h"
#include "prices.h"
#include "transport/shm/region.h"

namespace starling::simulation {

namespace {

Daemons* the_daemons = nullptr;
/// Longest delay of a message between daemons. When a rank dies, one time in four the daemons notice it later, by at most the second value.
constexpr uint64_t kWordNs = 3'000'000, kLateWordNs = 3'000'000'000;

}  // namespace

Daemons* daemons() { return the_daemons; }

uint64_t Daemons::word_ns(uint64_t most) {
    return prices().exact ? prices().of.system_daemon_reply : world_.random.below(most);
}

Daemons::Daemons(World& world, const Placement& placement)
    : world_(world), placement_(placement), jobs_(1 + placement.further.size()) {
    the_daemons = this;
    std::vector<uint32_t> hosts(placement.hosts);
    std::iota(hosts.begin(), hosts.end(), 0);
    KnownJob& first = create(0, describe(placement.host_of_rank, hosts), placement.host_of_rank);
    for (uint32_t h = 0; h < placement.hosts; ++h) {
        daemons_.push_back(&world.add_daemon(h));
        create_segment(first, h, h);
    }
    size_t most = placement.host_of_rank.size();
    for (const FurtherJob& job : placement.further) most = std::max(most, job.host_of_rank.size());
    for (size_t rank = 0; rank < most; ++rank) rank_variables_.push_back(std::to_string(rank));
}

Daemons::~Daemons() { the_daemons = nullptr; }

job::JobDescription Daemons::describe(const std::vector<uint32_t>& host_of_rank, const std::vector<uint32_t>& hosts) {
    Random& random = world_.random;
    job::JobDescription to;
    to.id = random.next() | 1;
    to.secret[0] = random.next();
    to.key = random.next() | 1;
    if (placement_.encrypts)
        for (uint8_t& byte : to.network_secret.bytes) byte = static_cast<uint8_t>(random.next());
    to.several_hosts = placement_.hosts > 1;
    to.recovers = placement_.recovers;
    to.size = static_cast<uint32_t>(host_of_rank.size());
    to.universe_size = static_cast<uint32_t>(placement_.host_of_rank.size());
    std::vector<uint32_t> entries(placement_.hosts);
    for (const uint32_t h : hosts) {
        entries[h] = static_cast<uint32_t>(to.hosts.size());
        job::HostEntry& host = to.hosts.emplace_back();
        host.id = h + 1;
        host.key = random.next() | 1;
        std::snprintf(host.name, sizeof host.name, "host%u", h);
        host.addresses = network()->rails();
        for (uint32_t rail = 0; rail < host.addresses; ++rail) host.ipv4[rail] = network()->address(h, rail);
    }
    std::vector<uint32_t> next_local(hosts.size()), entry_of_rank;
    for (const uint32_t host : host_of_rank) entry_of_rank.push_back(entries[host]);
    to.placements = job::fold_placements(entry_of_rank, 0, next_local);
    return to;
}

KnownJob& Daemons::create(uint32_t number, job::JobDescription description, std::vector<uint32_t> host_of_rank) {
    KnownJob& job = *(jobs_[number] = std::make_unique<KnownJob>());
    job.number = number;
    job.left = description.size;
    job.ranks_hosts = static_cast<uint32_t>(description.hosts.size());
    job.description = std::move(description);
    job.host_of_rank = std::move(host_of_rank);
    job.segments.resize(placement_.hosts);
    job.files.resize(placement_.hosts);
    job.has_arrived.resize(placement_.hosts);
    job.variables.resize(placement_.hosts);
    return job;
}

// Creates the segment outside all processes: its owner is the real process, whose descriptors other ranks open.
void Daemons::create_segment(KnownJob& job, uint32_t host, uint32_t entry) {
    world_.outside([&] {
        job::JobSegment& segment = job.segments[host];
        if (job::JobSegment::create(job.description, entry, segment) != MPI_SUCCESS)
            fail_run("%s", std::string(failure_text()).c_str());
        if (fstat(segment.fd(), &job.files[host]) != 0) fail_run("the segment's file has no status: %s", std::strerror(errno));
        segment.header().host = host + 1;
        std::snprintf(segment.header().control_socket, sizeof segment.header().control_socket, "daemon-%u", host);
        job.variables[host] = job::to_string(segment.address());
    });
}

KnownJob* Daemons::find(job::JobId id) const {
    const auto has_id = [id](const auto& job) { return job && job->description.id == id; };
    const auto found = std::find_if(jobs_.begin(), jobs_.end(), has_id);
    return found == jobs_.end() ? nullptr : found->get();
}

void* Daemons::mapping(int fd) const {
    struct stat wanted;
    if (fstat(fd, &wanted) != 0) return nullptr;
    for (const auto& job : jobs_) {
        if (!job) continue;
        for (size_t i = 0; i < job->files.size(); ++i)
            if (job->segments[i] && job->files[i].st_ino == wanted.st_ino && job->files[i].st_dev == wanted.st_dev)
                return &job->segments[i].header();
    }
    return nullptr;
}

bool Daemons::is_mapping(const void* memory) const {
    const auto is_of = [memory](const auto& job) {
        return job && std::any_of(job->segments.begin(), job->segments.end(),
                                  [memory](const job::JobSegment& s) { return s && &s.header() == memory; });
    };
    return std::any_of(jobs_.begin(), jobs_.end(), is_of);
}

void Daemons::ring(const KnownJob& job, uint32_t rank) {
    const job::JobSegment& segment = job.segments[job.host_of_rank[rank]];
    job::ring(shm::SegmentRegion(segment.region(rank)).doorbell());
}

void Daemons::ring_ranks(const KnownJob& job, uint32_t host) {
    for (uint32_t rank = 0; rank < job.host_of_rank.size(); ++rank)
        if (job.host_of_rank[rank] == host) ring(job, rank);
}

void Daemons::kill(Process& process) {
    done().add(Feature::deaths);
    world_.kill(process);
    close_all_of(process);
    const uint32_t rank = process.rank;
    KnownJob& job = *jobs_[process.job];
    const uint64_t begin = world_.now + (!prices().exact && world_.random.one_in(4) ? world_.random.below(kLateWordNs) : 0);
    // The root ends a spawned job of which a rank never arrives. If the universe has one host, the parents notice that themselves.
    const job::JobSegment& segment = job.segments[process.host];
    const bool never_arrives = job.parent != 0 && placement_.hosts > 1 &&
                               segment.cell(rank).state.load() == job::RankState::started &&
                               segment.header().arrived.load() < segment.header().local_ranks;
    // The last rank of the host may have died before it could report the arrival, which the segment has.
    if (job.parent != 0 && placement_.hosts > 1 && segment.header().arrived.load() >= segment.header().local_ranks)
        world_.at_daemon(begin, *daemons_[process.host], [this, &job, host = process.host] { on_arrived(job, host); });
    at_hosts(begin, [this, rank, &job, never_arrives](uint32_t h) {
        mark_dead(job, rank, h);
        if (never_arrives) fail(job);
    });
    // The end of the job is noticed after that of its last rank.
    if (has_several_jobs()) world_.at(begin + kWordNs, [this, &process] { note_end(process); });
}

// Each daemon carries out the order when it arrives there.
void Daemons::at_hosts(uint64_t begin, const std::function<void(uint32_t host)>& what) {
    for (uint32_t h = 0; h < placement_.hosts; ++h)
        world_.at_daemon(begin + word_ns(kWordNs), *daemons_[h], [what, h] { what(h); });
}

// No surviving rank needs a report of the processes that are killed with the job, because all end together.
void Daemons::end_job(Process& by) {
    world_.kill(by);
    close_all_of(by);
    if (!std::exchange(is_ending_, true))
        world_.at(world_.now + word_ns(kWordNs), [this] {
            for (const auto& process : world_.processes()) {
                if (process->gone()) continue;
                world_.kill(*process);
                close_all_of(*process);
            }
        });
    world_.stay();
}

void Daemons::mark_dead(KnownJob& job, uint32_t rank, uint32_t host) {
    job.dead.push_back(rank);
    job::JobSegment& segment = job.segments[host];
    if (!segment) return;
    const uint16_t port = job::PortWord::of(segment.port(rank).load()).port;
    segment.port(rank).store(job::PortWord{port, job::PortWord::failed}.word());
    if (segment.is_local(rank)) {
        segment.cell(rank).state.store(job::RankState::failed);
        segment.place(segment.local_index(rank)).store(job::CpuLocation::kNowhere);
    }
    segment.header().failures.fetch_add(1);
    ring_ranks(job, host);
    for (const auto& other : jobs_)
        if (other && other.get() != &job) ring_ranks(*other, host);
}

void Daemons::on_locate(Process& asker, const control::JobQuery& query, int fd) {
    Process* const who = &asker;
    KnownJob* const about = find(query.job);
    const uint32_t rank = query.rank;
    if (!about || rank >= about->host_of_rank.size()) fail_run("a rank asks for the port of a process that does not exist");
    world_.at_daemon(world_.now + word_ns(kWordNs), *daemons_[asker.host], [=, this] { answer(*who, *about, rank, fd); });
}

// Waits until the rank listens, copies its port word (state and port) to the segment of the requester's host, and replies if the requester
// is still connected.
void Daemons::answer(Process& asker, KnownJob& about, uint32_t rank, int fd) {
    if (asker.gone()) return;
    job::JobSegment& here = about.segments[asker.host];
    job::JobSegment& there = about.segments[about.host_of_rank[rank]];
    const uint32_t word = there.port(rank).load();
    const bool knows_of_death = job::PortWord::of(here.port(rank).load()).state == job::PortWord::failed;
    const bool has_ended = about.failing || about.over;
    if (word == 0 && !has_ended) {
        world_.at_daemon(world_.now + (prices().exact ? word_ns(0) : kWordNs), *daemons_[asker.host],
                         [=, this, &asker, &about] { answer(asker, about, rank, fd); });
        return;
    }
    if (!knows_of_death && !has_ended) here.port(rank).store(word);
    control::JobReply found;
    found.job = here.address();
    found.polls = there.cell(rank).polls.load();
    if (about.failing) found.error_class = MPI_ERR_PROC_ABORTED, found.text = "the job that was asked for has ended";
    if (!reply(asker, fd, control::encode(found))) ring(*jobs_[asker.job], asker.rank);
}

/// Sends a reply and rings the rank, unless the rank has ended or has closed the connection.
bool Daemons::reply(Process& to, int fd, std::string_view payload) {
    auto* const socket = to.gone() ? nullptr : descriptor_as<ControlSocket>(fd);
    if (!socket || socket->owner != &to) return false;
    socket->replies += control::encode_frame(control::MessageKind::reply, payload);
    const KnownJob& job = *jobs_[to.job];
    job.segments[to.host].cell(to.rank).replies.fetch_add(1);
    socket->changed();
    ring(job, to.rank);
    return true;
}

void Daemons::on_abandoned(const control::JobQuery& query, const Process& by) {
    KnownJob* const about = find(query.job);
    if (!about) return;
    const uint32_t rank = query.rank, host = about->host_of_rank[rank], by_rank = by.rank;
    const job::JobId by_job = jobs_[by.job]->description.id;
    world_.at_daemon(world_.now + word_ns(kWordNs), *daemons_[host], [=, this] {
        job::RankCell& cell = about->segments[host].cell(rank);
        if (cell.abandoned_by_rank.load() != 0) return;
        cell.abandoned_by_job.store(by_job);
        cell.abandoned_by_rank.store(by_rank + 1);
        ring(*about, rank);
    });
}

std::string Daemons::plan_of(const Process& of) const {
    if (!prices().exact) return placement_.plans.reply(of.rank, static_cast<uint32_t>(jobs_[of.job]->host_of_rank.size()));
    const bool has_plan = of.job == 0 && of.rank < placement_.given_plans.size();
    return has_plan ? placement_.given_plans[of.rank] : encode(control::PlanReply());
}

void Daemons::on_plan(Process& asker, int fd) {
    Process* const who = &asker;
    const uint64_t wait = word_ns(world_.random.one_in(4) ? 20 * kWordNs : kWordNs);
    world_.at_daemon(world_.now + wait, *daemons_[asker.host], [=, this] { reply(*who, fd, plan_of(*who)); });
}

void ControlSocket::send(std::string_view bytes, int fd) {
    decoder.feed(bytes);
    control::ControlFrame frame;
    while (decoder.next(frame) == control::FrameDecoder::ControlDecodeResult::frame) daemons()->on_request(*owner, frame, fd);
}

}  // namespace starling::simulation
