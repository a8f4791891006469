#include "profile/record.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <deque>
#include <iterator>
#include <optional>
#include <unordered_map>

#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "base/state.h"
#include "control/control.h"
#include "control/profile_report.h"
#include "mpi.h"
#include "profile/call_site.h"
#include "profile/collectives.h"
#include "profile/core_time.h"
#include "profile/files.h"
#include "profile/module.h"
#include "profile/phase.h"
#include "profile/python_site.h"
#include "profile/waits.h"

namespace starling::profile {

namespace {

using control::ProfileReport;
static_assert(kCauses == ProfileReport::kCauses && kSizes == 3 && kAccesses == ProfileReport::kAccesses);

/// Stores the records that are still to be reported, and the reports that the launcher has not answered.
class Recorder {
  public:
    Recorder(job::JobSegment& own, uint32_t rank)
        : own_(own),
          rank_(rank),
          started_(now_ns()),
          reports_sizes_(control::knows_sizes(own.header().version)),
          cores_(read_core_use()) {
        timespec now{};
        clock_gettime(CLOCK_REALTIME, &now);
        since_1970_ = static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec) - started_;
    }

    void write_down(PhaseId ended);
    void note(ProfileReport::ConnectionRecord connection) {
        connection.at_ns = now_ns() - began_of(current_phase());
        if (connections_.size() < control::kMostConnections) connections_.push_back(connection);
    }
    void send_report(bool at_once);
    void take_back(ProfileReport report);
    void send_plainly();
    void finish() {
        write_down(current_phase());
        clear_counts();
        last_ = true;
        finished_ = now_ns();
        send_report(true);
    }
    bool done();

  private:
    uint64_t began_of(PhaseId id) const { return phase(id).began == 0 ? started_ : phase(id).began; }
    const std::string& name_of(const void* site);
    void sum_up();
    void poll();
    void abandon();
    void stop();
    bool may_send(uint64_t now);

    job::JobSegment& own_;
    const uint32_t rank_;
    const uint64_t started_;
    bool reports_sizes_;  ///< whether reports have sizes, modules and cores; false if the launcher's release does not know them
    /// Whether the root of the job, whose release is not known here, has accepted a report that has them.
    bool is_understood_ = false;
    uint64_t since_1970_;
    std::deque<ProfileReport::PhaseRecord> waiting_;
    size_t bytes_ = 0;                                          ///< size of the records still to be reported, bytes
    std::vector<ProfileReport::ConnectionRecord> connections_;  ///< connections opened and closed in the current phase
    std::unordered_map<const void*, std::string> sites_;
    std::vector<ProfileReport::ModuleRecord> modules_;  ///< modules of all sites, in the order of their first sites
    size_t modules_sent_ = 0;
    const ProfileReport::CoreRecord cores_;  ///< use of the cores when recording began
    struct UnderWay {
        control::ControlCall call;
        size_t bytes;
        std::optional<ProfileReport> repeated;  ///< the report, if it has additions for which the root may refuse it
    };
    std::deque<UnderWay> unanswered_;  ///< reports that the launcher has not answered, oldest first
    size_t unanswered_bytes_ = 0;
    std::vector<ProfileReport::PhaseRecord> refused_;  ///< records of refused reports, which are repeated
    bool abandoned_ = false;
    bool last_ = false;        ///< whether the next report is the last
    uint64_t paid_until_ = 0;  ///< time before which no report is sent, ns; each report advances it by kBetweenReportsNs
    uint64_t finished_ = 0;
};
STARLING_STATE Recorder* recorder = nullptr;

const std::string& Recorder::name_of(const void* site) {
    const auto [entry, fresh] = sites_.try_emplace(site);
    if (!fresh) return entry->second;
    entry->second = site ? name_of_site(reinterpret_cast<uint64_t>(site)) : "?";
    if (!site || is_label(site) || !reports_sizes_) return entry->second;
    ProfileReport::ModuleRecord module = module_of(reinterpret_cast<uint64_t>(site));
    if (!module.name.empty() && std::find(modules_.begin(), modules_.end(), module) == modules_.end())
        modules_.push_back(std::move(module));
    return entry->second;
}

std::vector<ProfileReport::SizeRecord> sizes_of_phase() {
    std::vector<ProfileReport::SizeRecord> all;
    for (size_t bin = 0; bin < kSizeBins; ++bin)
        if (sizes()[bin].messages > 0) all.push_back({size_of_bin(bin), sizes()[bin].messages, sizes()[bin].bytes});
    return all;
}

void Recorder::write_down(PhaseId ended) {
    if (abandoned_) return;
    const Phase& of = phase(ended);
    ProfileReport::PhaseRecord record;
    record.name = of.name;
    record.mark = static_cast<uint8_t>(of.mark);
    record.from = record.to = of.occurrences;
    const uint64_t began = began_of(ended);
    record.began_ns = began + since_1970_;
    record.ns = now_ns() - began;
    for (size_t i = 0; i < kCauses; ++i) record.waits_ns[i] = waits()[i];
    each_traffic(
        [](const Traffic& traffic, void* argument) {
            ProfileReport::PeerRecord peer{traffic.job, traffic.rank};
            for (size_t size = 0; size < kSizes; ++size) {
                const Tally &base = traffic.tallies[size][0], &connection = traffic.tallies[size][1];
                peer.messages[size] = base.messages + connection.messages;
                peer.bytes[size] = base.bytes + connection.bytes;
                peer.connection_messages += connection.messages;
                peer.connection_bytes += connection.bytes;
            }
            for (size_t i = 0; i < kAccesses; ++i) {
                const Tally &base = traffic.by_packets[i][0], &connection = traffic.by_packets[i][1],
                            &here = traffic.in_memory[i];
                peer.accesses[i] = base.messages + connection.messages + here.messages;
                peer.access_bytes[i] = base.bytes + connection.bytes + here.bytes;
                peer.packet_accesses += base.messages + connection.messages;
                peer.packet_access_bytes += base.bytes + connection.bytes;
                peer.connection_accesses += connection.messages;
                peer.connection_access_bytes += connection.bytes;
            }
            static_cast<ProfileReport::PhaseRecord*>(argument)->peers.push_back(peer);
        },
        &record);
    if (reports_sizes_) record.sizes = sizes_of_phase();
    struct RecordSink {
        Recorder& recorder;
        ProfileReport::PhaseRecord& record;
    } into{*this, record};
    each_collective(
        [](const CollectiveSum& sum, void* argument) {
            const RecordSink& into = *static_cast<RecordSink*>(argument);
            into.record.collectives.push_back({into.recorder.name_of(sum.site), kind_of_function(sum.function), sum.algorithm,
                                               sum.communicator, sum.size, sum.size_class, sum.tried, sum.calls, sum.bytes,
                                               sum.ns, sum.squares});
        },
        &into);
    each_wait(
        [](const WaitSum& sum, void* argument) {
            const RecordSink& into = *static_cast<RecordSink*>(argument);
            ProfileReport::WaitRecord wait{into.recorder.name_of(sum.site), sum.function ? sum.function : "?", {}};
            for (size_t i = 0; i < kCauses; ++i) wait.ns[i] = sum.ns[i];
            into.record.waits.push_back(std::move(wait));
        },
        &into);
    if (reports_sizes_) {
        each_file(
            [](const FileSum& sum, void* argument) {
                const RecordSink& into = *static_cast<RecordSink*>(argument);
                into.record.files.push_back(
                    {*sum.file, into.recorder.name_of(sum.site), sum.function, sum.calls, sum.bytes, sum.ns});
            },
            &into);
    }
    record.connections = std::move(connections_);
    connections_.clear();
    sort(record);
    bytes_ += footprint(record);
    waiting_.push_back(std::move(record));
    if (waiting_.size() > kMostRecords || bytes_ > kMostBytes) sum_up();
}

// Merges the unreported records of each phase, which are consecutive occurrences of the phase, into one.
void Recorder::sum_up() {
    std::unordered_map<std::string_view, ProfileReport::PhaseRecord*> first;
    std::deque<ProfileReport::PhaseRecord> summed;
    bytes_ = 0;
    for (ProfileReport::PhaseRecord& record : waiting_) {
        const auto found = first.find(record.name);
        if (found != first.end()) {
            merge(*found->second, record);
        } else {
            summed.push_back(std::move(record));
            first[summed.back().name] = &summed.back();
        }
    }
    waiting_ = std::move(summed);
    for (const ProfileReport::PhaseRecord& record : waiting_) bytes_ += footprint(record);
}

void Recorder::poll() {
    bool done = true;
    while (!unanswered_.empty() && done) {
        control::ControlCall& call = unanswered_.front().call;
        if (call.poll(done) != MPI_SUCCESS) return abandon();
        if (!done) return;
        control::NameReply reply;
        const bool accepted = decode(call.reply(), reply) && reply.error_class == MPI_SUCCESS;
        std::optional<ProfileReport>& repeated = unanswered_.front().repeated;
        if (!accepted && !repeated) return stop();  // the launcher records no profile
        is_understood_ = is_understood_ || (accepted && repeated);
        if (!accepted) take_back(std::move(*repeated));
        unanswered_bytes_ -= unanswered_.front().bytes;
        unanswered_.pop_front();
    }
    if (unanswered_.empty() && !refused_.empty()) send_plainly();
}

// Keeps a report to send it again, without what releases of wire version 1.0 do not read. The daemon of this host has created the segment,
// and may be of a newer release than the job's root.
void Recorder::take_back(ProfileReport report) {
    reports_sizes_ = false;
    last_ = report.last || last_;
    std::move(report.phases.begin(), report.phases.end(), std::back_inserter(refused_));
}

void Recorder::send_plainly() {
    waiting_.insert(waiting_.begin(), std::make_move_iterator(refused_.begin()), std::make_move_iterator(refused_.end()));
    refused_.clear();
    send_report(true);
}

void Recorder::stop() {
    abandoned_ = true;
    unanswered_.clear();
    refused_.clear();
    waiting_.clear();
}

// Handles the loss of the launcher: the process stops recording and continues.
void Recorder::abandon() {
    std::fprintf(stderr, "starling: rank %u: no more records are added to the profile: %s\n", rank_,
                 std::string(failure_text()).c_str());
    clear_failure();
    stop();
}

bool Recorder::may_send(uint64_t now) {
    constexpr uint64_t kSaved = kReportsSaved * kBetweenReportsNs;
    if (now < paid_until_ || unanswered_bytes_ > kMostUnderWay || unanswered_.size() >= kMostCalls) return false;
    paid_until_ = std::max(paid_until_, now > kSaved ? now - kSaved : 0) + kBetweenReportsNs;
    return true;
}

void Recorder::send_report(bool at_once) {
    if (!unanswered_.empty()) poll();
    if (abandoned_ || (waiting_.empty() && !last_)) return;
    if (!refused_.empty()) return;  // until all that may be refused are answered, so that repeated ones stay in order
    if (!at_once && !may_send(now_ns())) return;
    ProfileReport report;
    report.last = last_;
    report.phases.assign(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.end()));
    if (reports_sizes_) {
        report.lists_sizes =
            true;  // a root that does not read them refuses this report too, so that none overtakes a repeated one
        report.modules.assign(modules_.begin() + static_cast<ptrdiff_t>(modules_sent_), modules_.end());
        if (last_) report.cores = since(cores_, read_core_use());
    } else {
        remove_additions(report);
    }
    const std::string bytes = encode(report);
    control::ControlCall call;
    const int error = control::ControlCall::start(own_, rank_, control::MessageKind::profile, bytes, call);
    if (error == MPI_ERR_PENDING) {
        std::move(report.phases.begin(), report.phases.end(), waiting_.begin());
        return clear_failure();
    }
    if (error != MPI_SUCCESS) return abandon();
    waiting_.clear();
    modules_sent_ = modules_.size();
    bytes_ = 0;
    unanswered_.push_back({std::move(call), bytes.size(), {}});
    if (!is_understood_ && has_additions(report)) unanswered_.back().repeated = std::move(report);
    unanswered_bytes_ += bytes.size();
    last_ = false;
}

bool Recorder::done() {
    send_report(true);
    return abandoned_ || (unanswered_.empty() && !last_) || now_ns() - finished_ > kLongestFarewellNs;
}

}  // namespace

void start_recording(job::JobSegment& own, uint32_t rank) {
    // A program started without mpiexec has no launcher that receives reports. The launcher that it may start later does not record
    // profiles.
    if (!counting() || recorder || own.header().control_socket[0] == '\0' ||
        (knows_pids() && own.header().owner_pid == getpid()))
        return;
    recorder = new Recorder(own, rank);
    python_site();  // while Python has one thread: it checks whether frames can be read when there are several
    listen_to_phases([](PhaseId ended, PhaseId) {
        recorder->write_down(ended);
        recorder->send_report(false);
    });
}

void note_connection(const Traffic& peer, bool opened) {
    if (recorder) recorder->note({0, peer.job, peer.rank, opened});
}

void send_report() {
    if (recorder) recorder->send_report(false);
}

void send_rest() {
    if (recorder) recorder->send_report(true);
}

void flush() {
    const Phase& now = phase(current_phase());
    begin_phase(std::string(now.name), now.mark);
    send_rest();
}

void finish_recording() {
    if (recorder) recorder->finish();
}

bool handed_on() { return !recorder || recorder->done(); }

}  // namespace starling::profile
