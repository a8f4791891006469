#include "launch/universe/address_service.h"

#include <algorithm>

#include "job/doorbell.h"
#include "launch/process/launcher.h"
#include "mpi.h"

namespace starling::launch {

namespace {

using job::PortWord;
using job::RankState;

constexpr std::chrono::milliseconds kFirstPause{1}, kLongestPause{20};
/// Time after which an unanswered lookup no longer delays other lookups: its rank is late.
constexpr std::chrono::milliseconds kSlowAnswer{10};
/// Time for which late ranks of this host delay its answer to gather_ports.
constexpr std::chrono::milliseconds kLatePatience{200};

// Returns the port and state of a rank of this host.
PortWord word_of(const job::JobSegment& segment, uint32_t rank) {
    PortWord word = PortWord::of(segment.port(rank).load(std::memory_order_acquire));
    switch (segment.cell(rank).state.load(std::memory_order_acquire)) {
        case RankState::started:
        case RankState::initialized:
            word.state = word.port != 0 ? PortWord::running : PortWord::unknown;
            break;
        case RankState::finalized:
            word.state = PortWord::finalized;
            break;
        case RankState::exited:
            word.state = PortWord::finalized;
            word.is_final = true;
            break;
        case RankState::failed:
        case RankState::not_started:
            word.state = PortWord::failed;
            break;
    }
    return word;
}

bool is_known(const job::JobSegment& segment, uint32_t rank) {
    return PortWord::of(segment.port(rank).load(std::memory_order_acquire)).state != PortWord::unknown;
}

// Merges hosts' answers into the port table. `by_host`: by index in the host table; null: no answer.
void learn(const job::JobSegment& segment, const std::vector<const HostPorts*>& by_host) {
    for (uint64_t i = 0; i < segment.header().runs; ++i) {
        const job::Placement& run = segment.run(i);
        const HostPorts* ports = by_host[run.host];
        if (!ports) continue;
        for (uint32_t j = 0; j < run.count && run.local + j < ports->words.size(); ++j)
            job::learn(segment.port(run.first + j * run.stride), PortWord::of(ports->words[run.local + j]));
    }
}

}  // namespace

AddressService::AddressService(Launcher& launcher, uint32_t self, Ways ways)
    : launcher_(launcher), self_(self), ways_(std::move(ways)) {}

AddressService::~AddressService() {
    if (timer_ != 0) launcher_.loop().cancel(timer_);
    if (more_timer_ != 0) launcher_.loop().cancel(more_timer_);
}

void AddressService::reply(job::JobId job, uint32_t rank, const Controller::ReplyCallback& answer, uint32_t looks) const {
    control::JobReply reply;
    reply.polls = looks;
    const LocalJob* about = launcher_.find_job(job);
    launcher_.find_segment(job, reply.job);
    if (!about || about->segment.header().state.load(std::memory_order_acquire) == job::JobState::failed) {
        reply.error_class = MPI_ERR_PROC_ABORTED;
        reply.text = "the job that was asked for has ended";
    } else if (PortWord::of(about->segment.port(rank).load(std::memory_order_acquire)).state == PortWord::failed) {
        reply.error_class = MPI_ERR_PROC_ABORTED;
        reply.text = "the rank that was asked for has died";
    }
    answer(encode(reply));
}

void AddressService::locate(LocalJob& job, uint32_t rank, Controller::ReplyCallback answer) {
    const uint32_t host = job.segment.host_of(rank);
    const bool resolves_here = host >= job.tree_hosts.size() || job.tree_hosts[host] == self_;
    if (resolves_here || job.segment.header().state.load(std::memory_order_acquire) != job::JobState::running) {
        reply(job.id(), rank, answer);
        return;
    }
    std::vector<Controller::ReplyCallback>& answers = asked_[{job.id(), rank}];
    answers.push_back(std::move(answer));
    if (answers.size() > 1) return;
    // If a rank asks for a port that is already known, it wants the state of that port's rank, which only that rank's own host has.
    if (PortWord::of(job.segment.port(rank).load(std::memory_order_acquire)).port != 0) return send_question(job, rank);
    PortSearch& search = searches_.try_emplace(job.id(), job.segment.header().hosts).first->second;
    search.want(host, rank);
    advance(job, search);
}

void AddressService::send_question(const LocalJob& job, uint32_t rank) const {
    ways_.send(job.tree_hosts[job.segment.host_of(rank)], {.kind = OrderKind::want_ports, .job = job.id(), .rank = rank});
}

void AddressService::advance(const LocalJob& job, PortSearch& search) {
    const PortSearch::SearchStep step = search.next();
    for (const uint32_t rank : step.lookups) send_question(job, rank);
    if (step.table) {
        HostSet all = HostSet::of(job.tree_hosts);
        all.add(self_);
        ways_.gather({.kind = OrderKind::want_table, .job = job.id()}, {}, all);
    }
    if (more_timer_ == 0 && search.held_back()) more_timer_ = launcher_.loop().after(kSlowAnswer, [this] { start_more(); });
}

void AddressService::start_more() {
    more_timer_ = 0;
    for (auto& [id, search] : searches_) {
        const LocalJob* job = launcher_.find_job(id);
        if (!job || !search.held_back()) continue;
        search.start_more();
        advance(*job, search);
    }
}

void AddressService::collect(const LocalJob& job, const HostOrder& order) {
    Collection collection{job.id(), order.round, {}, EventLoop::Clock::now() + kLatePatience};
    Reader set(order.bytes);
    if (!HostSet::decode(set, collection.contributors) || answer_collection(collection)) return;
    collections_.push_back(std::move(collection));
    check_again_soon();
}

// Returns false if the collection must be tried again later.
bool AddressService::answer_collection(const Collection& collection) const {
    const LocalJob* job = launcher_.find_job(collection.job);
    if (!job) return true;
    HostPorts ports{job->segment.header().my_host, true, {}};
    for (uint32_t i = 0; i < job->segment.header().local_ranks; ++i) {
        const PortWord word = word_of(job->segment, job->segment.local_rank(i));
        ports.complete = ports.complete && word.state != PortWord::unknown;
        ports.words.push_back(word.word());
    }
    if (!ports.complete && EventLoop::Clock::now() < collection.until) return false;
    ways_.gather({.kind = OrderKind::host_ports, .job = collection.job, .round = collection.round}, encode(ports),
                 collection.contributors);
    return true;
}

void AddressService::on_table(LocalJob& job, const HostOrder& order) {
    PortTable table;
    if (!decode(order.bytes, table)) return;
    std::vector<const HostPorts*> by_host(job.segment.header().hosts, nullptr);
    for (const HostPorts& ports : table) {
        if (ports.host < by_host.size()) by_host[ports.host] = &ports;
    }
    learn(job.segment, by_host);
    const auto search = searches_.find(job.id());
    if (search == searches_.end()) return;
    search->second.on_table();
    settle(job.id(), search->second.settle([&](uint32_t rank) { return is_known(job.segment, rank); }));
    advance(job, search->second);
}

void AddressService::count(job::JobId job, uint32_t& lookups, uint32_t& tables) const {
    const auto search = searches_.find(job);
    if (search == searches_.end()) return;
    lookups = search->second.lookups();
    tables = search->second.tables();
}

void AddressService::on_question(uint32_t from, const HostOrder& order) {
    const AddressRequest question{from, order.job, order.rank};
    if (answer_question(question)) return;
    open_.push_back(question);
    check_again_soon();
}

// Polls with growing pauses. Ranks store their ports and read their notices without reporting it; polling is cheaper than a message from
// each rank.
void AddressService::check_again_soon() {
    if (timer_ != 0) return;
    pause_ = kFirstPause;
    timer_ = launcher_.loop().after(pause_, [this] { check_again(); });
}

void AddressService::check_again() {
    timer_ = 0;
    std::erase_if(open_, [this](const AddressRequest& question) { return answer_question(question); });
    std::erase_if(notices_, [this](const HostOrder& notice) { return leave_notice(notice); });
    std::erase_if(collections_, [this](const Collection& collection) { return answer_collection(collection); });
    pause_ = std::min(pause_ * 2, kLongestPause);
    if (!open_.empty() || !notices_.empty() || !collections_.empty())
        timer_ = launcher_.loop().after(pause_, [this] { check_again(); });
}

bool AddressService::answer_question(const AddressRequest& question) {
    HostOrder answer{.kind = OrderKind::ports, .job = question.job, .rank = question.rank, .host = job::kNoHost};
    LocalJob* job = launcher_.find_job(question.job);
    // If the job is not on this host, or no longer, answer at once with no ports.
    if (job && question.rank < job->segment.header().size && job->segment.is_local(question.rank)) {
        const PortWord wanted = word_of(job->segment, question.rank);
        if (wanted.state == PortWord::unknown) return false;
        Writer words;
        for (uint32_t i = 0; i < job->segment.header().local_ranks; ++i)
            words.number(word_of(job->segment, job->segment.local_rank(i)).word());
        answer.host = job->segment.header().my_host;
        answer.polls = job->segment.cell(question.rank).polls.load(std::memory_order_relaxed);
        answer.bytes = words.take();
    }
    ways_.send(question.from, answer);
    return true;
}

void AddressService::on_answer(const HostOrder& order) {
    LocalJob* job = launcher_.find_job(order.job);
    if (job && order.host < job->segment.header().hosts) {
        HostPorts ports;
        Reader words(order.bytes);
        ports.words.resize(order.bytes.size() / sizeof(uint32_t));
        for (uint32_t& word : ports.words) word = words.number<uint32_t>();
        std::vector<const HostPorts*> by_host(job->segment.header().hosts, nullptr);
        by_host[order.host] = &ports;
        learn(job->segment, by_host);
    }
    settle(order.job, order.rank, static_cast<uint32_t>(order.polls));
    const auto search = searches_.find(order.job);
    if (!job || search == searches_.end() || order.rank >= job->segment.header().size) return;
    const uint32_t host = job->segment.host_of(order.rank);
    search->second.answered(host, order.rank);
    settle(order.job, search->second.settle(host, [&](uint32_t rank) { return is_known(job->segment, rank); }));
    advance(*job, search->second);
}

void AddressService::settle(job::JobId job, uint32_t rank, uint32_t looks) {
    const auto found = asked_.find({job, rank});
    if (found == asked_.end()) return;
    const std::vector<Controller::ReplyCallback> answers = std::move(found->second);
    asked_.erase(found);
    for (const Controller::ReplyCallback& answer : answers) reply(job, rank, answer, looks);
}

void AddressService::settle(job::JobId job, const std::vector<uint32_t>& ranks) {
    for (const uint32_t rank : ranks) settle(job, rank);
}

void AddressService::notify_abandoned(const LocalJob& by, uint32_t by_rank, const LocalJob& job, uint32_t rank) {
    const uint32_t host = job.segment.host_of(rank);
    if (host >= job.tree_hosts.size() || job.tree_hosts[host] == self_) return;
    ways_.send(job.tree_hosts[host],
               {.kind = OrderKind::abandoned, .job = job.id(), .rank = rank, .by_job = by.id(), .by_rank = by_rank});
}

void AddressService::on_abandoned(const HostOrder& order) {
    if (leave_notice(order)) return;
    notices_.push_back(order);
    check_again_soon();
}

// Stores a notice in the rank's cell. Returns false if the rank has not read its previous notice yet.
bool AddressService::leave_notice(const HostOrder& notice) {
    LocalJob* job = launcher_.find_job(notice.job);
    if (!job || notice.rank >= job->segment.header().size || !job->segment.is_local(notice.rank)) return true;
    job::RankCell& cell = job->segment.cell(notice.rank);
    // A rank has published its port, so others may connect to it, before it reaches the end of MPI_Init.
    const RankState state = cell.state.load(std::memory_order_acquire);
    const bool connectable = state == RankState::started && PortWord::of(job->segment.port(notice.rank).load()).port != 0;
    if (state != RankState::initialized && !connectable) return true;
    if (cell.abandoned_by_rank.load(std::memory_order_acquire) != 0) return false;
    cell.abandoned_by_job.store(notice.by_job, std::memory_order_relaxed);
    cell.abandoned_by_rank.store(static_cast<uint32_t>(notice.by_rank) + 1, std::memory_order_release);
    job::ring(*reinterpret_cast<job::Doorbell*>(job->segment.region(notice.rank)));
    return true;
}

void AddressService::forget(job::JobId job) {
    const auto search = searches_.find(job);
    if (search != searches_.end()) search->second.forget_all();
    if (search != searches_.end() && !launcher_.find_job(job)) searches_.erase(search);
    while (true) {
        const auto next = asked_.lower_bound({job, 0});
        if (next == asked_.end() || next->first.first != job) return;
        settle(job, next->first.second);
    }
}

void AddressService::forget(job::JobId job, const std::vector<uint32_t>& ranks) {
    const auto search = searches_.find(job);
    const LocalJob* about = launcher_.find_job(job);
    for (const uint32_t rank : ranks) {
        if (about && search != searches_.end()) search->second.forget(about->segment.host_of(rank), rank);
        settle(job, rank);
    }
    if (about && search != searches_.end()) advance(*about, search->second);
}

}  // namespace starling::launch
