#include "daemon.h"

#include <arpa/inet.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "features.h"
#include "job/environment.h"
#include "mpi.h"
#include "network.h"
#include "transport/shm/region.h"

namespace starling::simulation {

namespace {

Daemons* the_daemons = nullptr;
/// Longest delay of a message between daemons. When a rank dies, one time in four the daemons notice it later, by at most the second value.
constexpr uint64_t kWordNs = 3'000'000, kLateWordNs = 3'000'000'000;

job::JobDescription describe(const Placement& placement, Random& random) {
    job::JobDescription to;
    to.id = random.next() | 1;
    to.secret[0] = random.next();
    to.key = random.next() | 1;
    if (placement.encrypts)
        for (uint8_t& byte : to.network_secret.bytes) byte = static_cast<uint8_t>(random.next());
    to.several_hosts = placement.hosts > 1;
    to.recovers = placement.recovers;
    to.size = to.universe_size = static_cast<uint32_t>(placement.host_of_rank.size());
    for (uint32_t h = 0; h < placement.hosts; ++h) {
        job::HostEntry& host = to.hosts.emplace_back();
        host.id = h + 1;
        host.key = random.next() | 1;
        std::snprintf(host.name, sizeof host.name, "host%u", h);
        host.addresses = network()->rails();
        for (uint32_t rail = 0; rail < host.addresses; ++rail) host.ipv4[rail] = network()->address(h, rail);
    }
    std::vector<uint32_t> next_local(placement.hosts);
    to.placements = job::fold_placements(placement.host_of_rank, 0, next_local);
    return to;
}

}  // namespace

Daemons* daemons() { return the_daemons; }

Daemons::Daemons(World& world, const Placement& placement)
    : world_(world), placement_(placement), segments_(placement.hosts), job_variables_(placement.hosts) {
    the_daemons = this;
    const job::JobDescription job = describe(placement, world.random);
    for (uint32_t h = 0; h < placement.hosts; ++h) {
        daemons_.push_back(&world.add_daemon(h));
        job::JobSegment& segment = segments_[h];
        if (job::JobSegment::create(job, h, segment) != MPI_SUCCESS) fail_run("%s", std::string(failure_text()).c_str());
        if (fstat(segment.fd(), &files_.emplace_back()) != 0)
            fail_run("the segment's file has no status: %s", std::strerror(errno));
        segment.header().host = h + 1;
        std::snprintf(segment.header().control_socket, sizeof segment.header().control_socket, "daemon-%u", h);
        job_variables_[h] = job::to_string(segment.address());
    }
    for (uint32_t rank = 0; rank < job.size; ++rank) rank_variables_.push_back(std::to_string(rank));
}

Daemons::~Daemons() { the_daemons = nullptr; }

void* Daemons::mapping(int fd) const {
    struct stat wanted;
    if (fstat(fd, &wanted) != 0) return nullptr;
    for (size_t i = 0; i < files_.size(); ++i)
        if (files_[i].st_ino == wanted.st_ino && files_[i].st_dev == wanted.st_dev) return &segments_[i].header();
    return nullptr;
}

bool Daemons::is_mapping(const void* memory) const {
    return std::any_of(segments_.begin(), segments_.end(), [memory](const auto& s) { return &s.header() == memory; });
}

void Daemons::ring(uint32_t rank) {
    job::JobSegment& segment = segments_[placement_.host_of_rank[rank]];
    job::ring(shm::SegmentRegion(segment.region(rank)).doorbell());
}

void Daemons::kill(Process& process) {
    done().add(Feature::deaths);
    world_.kill(process);
    close_all_of(process);
    const uint32_t rank = process.rank;
    const uint64_t begin = world_.now + (world_.random.one_in(4) ? world_.random.below(kLateWordNs) : 0);
    for (uint32_t h = 0; h < placement_.hosts; ++h)
        world_.at_daemon(begin + world_.random.below(kWordNs), *daemons_[h], [this, rank, h] { mark_dead(rank, h); });
}

// No surviving rank needs a report of the processes that are killed with the job, because all end together.
void Daemons::end_job(Process& by) {
    world_.kill(by);
    close_all_of(by);
    if (!std::exchange(is_ending_, true))
        world_.at(world_.now + world_.random.below(kWordNs), [this] {
            for (const auto& process : world_.processes()) {
                if (process->gone()) continue;
                world_.kill(*process);
                close_all_of(*process);
            }
        });
    world_.stay();
}

void Daemons::mark_dead(uint32_t rank, uint32_t host) {
    job::JobSegment& segment = segments_[host];
    const uint16_t port = job::PortWord::of(segment.port(rank).load()).port;
    segment.port(rank).store(job::PortWord{port, job::PortWord::failed}.word());
    if (segment.is_local(rank)) {
        segment.cell(rank).state.store(job::RankState::failed);
        segment.place(segment.local_index(rank)).store(job::CpuLocation::kNowhere);
    }
    segment.header().failures.fetch_add(1);
    for (uint32_t other = 0; other < segment.header().size; ++other)
        if (segment.is_local(other)) ring(other);
}

void Daemons::on_locate(Process& asker, const control::JobQuery& query, int fd) {
    Process* const who = &asker;
    const uint32_t rank = query.rank;
    world_.at_daemon(world_.now + world_.random.below(kWordNs), *daemons_[asker.host], [=, this] { answer(*who, rank, fd); });
}

// Waits until the rank listens, copies its port word (state and port) to the segment of the requester's host, and replies if the requester
// is still connected.
void Daemons::answer(Process& asker, uint32_t rank, int fd) {
    if (asker.gone()) return;
    job::JobSegment& here = segments_[asker.host];
    job::JobSegment& there = segments_[placement_.host_of_rank[rank]];
    const uint32_t word = there.port(rank).load();
    const bool knows_of_death = job::PortWord::of(here.port(rank).load()).state == job::PortWord::failed;
    if (word == 0) {
        world_.at_daemon(world_.now + kWordNs, *daemons_[asker.host], [=, this, &asker] { answer(asker, rank, fd); });
        return;
    }
    if (!knows_of_death) here.port(rank).store(word);
    if (auto* const socket = descriptor_as<ControlSocket>(fd); socket && socket->owner == &asker) {
        control::JobReply reply;
        reply.job = here.address();
        reply.polls = there.cell(rank).polls.load();
        socket->replies += control::encode_frame(control::MessageKind::reply, control::encode(reply));
        here.cell(asker.rank).replies.fetch_add(1);
        socket->changed();
    }
    ring(asker.rank);
}

void Daemons::on_abandoned(const control::JobQuery& query, uint32_t by) {
    const uint32_t rank = query.rank, host = placement_.host_of_rank[rank];
    world_.at_daemon(world_.now + world_.random.below(kWordNs), *daemons_[host], [=, this] {
        job::RankCell& cell = segments_[host].cell(rank);
        if (cell.abandoned_by_rank.load() != 0) return;
        cell.abandoned_by_job.store(segments_[host].header().id);
        cell.abandoned_by_rank.store(by + 1);
        ring(rank);
    });
}

void Daemons::on_plan(Process& asker, int fd) {
    Process* const who = &asker;
    const uint64_t wait = world_.random.below(world_.random.one_in(4) ? 20 * kWordNs : kWordNs);
    world_.at_daemon(world_.now + wait, *daemons_[asker.host], [=, this] {
        auto* const socket = who->gone() ? nullptr : descriptor_as<ControlSocket>(fd);
        if (!socket || socket->owner != who) return;
        const auto ranks = static_cast<uint32_t>(placement_.host_of_rank.size());
        socket->replies += control::encode_frame(control::MessageKind::reply, placement_.plans.reply(who->rank, ranks));
        segments_[who->host].cell(who->rank).replies.fetch_add(1);
        socket->changed();
        ring(who->rank);
    });
}

void Daemons::on_arrived() {
    if (++arrived_ < placement_.hosts) return;
    for (job::JobSegment& segment : segments_) segment.header().all_arrived.store(1);
}

void ControlSocket::send(std::string_view bytes, int fd) {
    decoder.feed(bytes);
    control::ControlFrame frame;
    control::JobQuery query;
    while (decoder.next(frame) == control::FrameDecoder::ControlDecodeResult::frame) {
        const bool asks = control::decode(frame.payload, query);
        if (frame.kind == control::MessageKind::locate && asks) daemons()->on_locate(*owner, query, fd);
        if (frame.kind == control::MessageKind::abandoned && asks) daemons()->on_abandoned(query, owner->rank);
        if (frame.kind == control::MessageKind::plan) daemons()->on_plan(*owner, fd);
        if (frame.kind == control::MessageKind::arrived) daemons()->on_arrived();
    }
}

}  // namespace starling::simulation
