#include "launch/locator.h"

#include <algorithm>

#include "boot/doorbell.h"
#include "launch/launcher.h"
#include "mpi.h"

namespace starling::launch {

namespace {

using boot::PortWord;
using boot::RankState;

constexpr std::chrono::milliseconds kFirstPause{1}, kLongestPause{20};

// What this host knows of one of its ranks.
PortWord word_of(const boot::JobSegment& segment, uint32_t rank) {
    PortWord word = PortWord::of(segment.port(rank).load(std::memory_order_acquire));
    switch (segment.cell(rank).state.load(std::memory_order_acquire)) {
        case RankState::started:
        case RankState::initialized:
            word.state = word.port != 0 ? PortWord::running : PortWord::unknown;
            break;
        case RankState::finalized:
        case RankState::exited:
            word.state = PortWord::finalized;
            break;
        case RankState::failed:
        case RankState::not_started:
            word.state = PortWord::failed;
            break;
    }
    return word;
}

// Knowledge only grows: a port may have been learned from a datagram meanwhile, and who has ended does not come back.
void learn(std::atomic<uint32_t>& entry, PortWord news) {
    uint32_t known = entry.load(std::memory_order_relaxed);
    uint32_t merged = 0;
    do {
        const PortWord before = PortWord::of(known);
        const PortWord after{news.port != 0 ? news.port : before.port, std::max(before.state, news.state)};
        merged = after.word();
    } while (merged != known && !entry.compare_exchange_weak(known, merged, std::memory_order_release));
}

}  // namespace

Locator::Locator(Launcher& launcher, uint32_t self, Send send)
    : launcher_(launcher), self_(self), send_(std::move(send)) {}

Locator::~Locator() {
    if (timer_ != 0) launcher_.loop().cancel(timer_);
}

void Locator::reply(boot::JobId job, uint32_t rank, const Superior::Answer& answer, uint32_t looks) const {
    boot::JobReply reply;
    reply.looks = looks;
    const Job* about = launcher_.find_job(job);
    launcher_.find_segment(job, reply.job);
    if (!about || about->segment.header().state.load(std::memory_order_acquire) == boot::JobState::failed) {
        reply.error_class = MPI_ERR_PROC_ABORTED;
        reply.text = "that job has ended";
    } else if (PortWord::of(about->segment.port(rank).load(std::memory_order_acquire)).state == PortWord::failed) {
        reply.error_class = MPI_ERR_PROC_ABORTED;
        reply.text = "that rank has died";
    }
    answer(encode(reply));
}

void Locator::locate(Job& job, uint32_t rank, Superior::Answer answer) {
    const uint32_t host = job.segment.host_of(rank);
    const bool here = host < job.tree_hosts.size() && job.tree_hosts[host] == self_;
    if (here || job.segment.header().state.load(std::memory_order_acquire) != boot::JobState::running) {
        reply(job.id(), rank, answer);
        return;
    }
    std::vector<Superior::Answer>& answers = asked_[{job.id(), rank}];
    answers.push_back(std::move(answer));
    if (answers.size() == 1) send_(job.tree_hosts[host], {OrderKind::want_ports, job.id(), rank, 0, 0, {}, {}});
}

void Locator::on_question(uint32_t from, const Order& order) {
    const Question question{from, order.job, order.rank};
    if (answer_question(question)) return;
    open_.push_back(question);
    look_again_soon();
}

// A rank stores its port, and reads its notices, without telling anyone; a look now and then is cheaper than a word from
// each of them.
void Locator::look_again_soon() {
    if (timer_ != 0) return;
    pause_ = kFirstPause;
    timer_ = launcher_.loop().after(pause_, [this] { look_again(); });
}

void Locator::look_again() {
    timer_ = 0;
    std::erase_if(open_, [this](const Question& question) { return answer_question(question); });
    std::erase_if(notices_, [this](const Order& notice) { return leave_notice(notice); });
    pause_ = std::min(pause_ * 2, kLongestPause);
    if (!open_.empty() || !notices_.empty()) timer_ = launcher_.loop().after(pause_, [this] { look_again(); });
}

bool Locator::answer_question(const Question& question) {
    Order answer{OrderKind::ports, question.job, question.rank, boot::kNoHost, 0, {}, {}};
    Job* job = launcher_.find_job(question.job);
    // A job that is not here (any more) has an answer too: none.
    if (job && question.rank < job->segment.header().size && job->segment.is_local(question.rank)) {
        const PortWord wanted = word_of(job->segment, question.rank);
        if (wanted.state == PortWord::unknown) return false;
        Writer words;
        for (uint32_t i = 0; i < job->segment.header().local_ranks; ++i)
            words.number(word_of(job->segment, job->segment.local_rank(i)).word());
        answer.a = job->segment.header().my_host;
        answer.b = job->segment.cell(question.rank).looks.load(std::memory_order_relaxed);
        answer.bytes = words.take();
    }
    send_(question.from, answer);
    return true;
}

void Locator::on_answer(const Order& order) {
    Job* job = launcher_.find_job(order.job);
    if (job && order.a < job->segment.header().hosts) {
        Reader words(order.bytes);
        std::vector<uint32_t> by_local(order.bytes.size() / sizeof(uint32_t));
        for (uint32_t& word : by_local) word = words.number<uint32_t>();
        const auto description = job->segment.description();
        for (const boot::Placement& run : description.placements) {
            if (run.host != order.a) continue;
            for (uint32_t i = 0; i < run.count && run.local + i < by_local.size(); ++i)
                learn(job->segment.port(run.first + i * run.stride), PortWord::of(by_local[run.local + i]));
        }
    }
    const auto found = asked_.find({order.job, order.rank});
    if (found == asked_.end()) return;
    const std::vector<Superior::Answer> answers = std::move(found->second);
    asked_.erase(found);
    for (const Superior::Answer& answer : answers) reply(order.job, order.rank, answer, static_cast<uint32_t>(order.b));
}

void Locator::tell_given_up(const Job& by, uint32_t by_rank, const Job& job, uint32_t rank) {
    const uint32_t host = job.segment.host_of(rank);
    if (host >= job.tree_hosts.size() || job.tree_hosts[host] == self_) return;
    send_(job.tree_hosts[host], {OrderKind::given_up, job.id(), rank, by.id(), by_rank, {}, {}});
}

void Locator::on_given_up(const Order& order) {
    if (leave_notice(order)) return;
    notices_.push_back(order);
    look_again_soon();
}

// False if the rank has one that it has not read.
bool Locator::leave_notice(const Order& notice) {
    Job* job = launcher_.find_job(notice.job);
    if (!job || notice.rank >= job->segment.header().size || !job->segment.is_local(notice.rank)) return true;
    boot::RankCell& cell = job->segment.cell(notice.rank);
    if (cell.state.load(std::memory_order_acquire) != RankState::initialized) return true;
    if (cell.given_up_by_rank.load(std::memory_order_acquire) != 0) return false;
    cell.given_up_by_job.store(notice.a, std::memory_order_relaxed);
    cell.given_up_by_rank.store(static_cast<uint32_t>(notice.b) + 1, std::memory_order_release);
    boot::ring(*reinterpret_cast<boot::Doorbell*>(job->segment.region(notice.rank)));
    return true;
}

void Locator::forget(boot::JobId job) {
    for (auto next = asked_.lower_bound({job, 0}); next != asked_.end() && next->first.first == job;) {
        const uint32_t rank = next->first.second;
        const std::vector<Superior::Answer> answers = std::move(next->second);
        next = asked_.erase(next);
        for (const Superior::Answer& answer : answers) reply(job, rank, answer);
    }
}

void Locator::forget(boot::JobId job, const std::vector<uint32_t>& ranks) {
    for (const uint32_t rank : ranks) {
        const auto found = asked_.find({job, rank});
        if (found == asked_.end()) continue;
        const std::vector<Superior::Answer> answers = std::move(found->second);
        asked_.erase(found);
        for (const Superior::Answer& answer : answers) reply(job, rank, answer);
    }
}

}  // namespace starling::launch
