#include "plan/run_report.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/counter_start.h"
#include "base/error.h"
#include "base/process.h"
#include "base/state.h"
#include "control/control.h"
#include "control/profile_report.h"
#include "link/job.h"
#include "link/peer.h"
#include "mpi.h"

namespace starling::plan {

namespace {

using control::ProfileReport;

struct RunReport {
    std::string payload;  ///< report that is still to be sent; empty: none
    control::ControlCall call;
    bool called = false;  ///< whether the launcher has the request, and owes the answer
    uint64_t began = 0;   ///< when the report was made, ns
};
STARLING_STATE RunReport* report = nullptr;

bool is_wanted() {
    const bool automatic = config().plan == PlanSource::automatic || config().plan == PlanSource::cached;
    const auto& header = link::self().job->segment().header();
    // A program started without mpiexec has no launcher that keeps reports.
    const bool alone = header.control_socket[0] == '\0' || (knows_pids() && header.owner_pid == getpid());
    return automatic && !config().profile && !alone;
}

std::vector<ProfileReport::PeerRecord> sent_to_peers() {
    std::vector<ProfileReport::PeerRecord> peers;
    link::self().job->each_peer([&](const link::Peer& peer) {
        if (peer.next_send == kCounterStart || peer.rank == link::self().rank) return;
        ProfileReport::PeerRecord& record = peers.emplace_back();
        record.job = peer.job.address().id;
        record.rank = peer.rank;
        record.messages[0] = peer.next_send - kCounterStart;
        record.bytes[0] = peer.bytes_sent;
    });
    if (peers.size() <= kMostReported) return peers;
    std::nth_element(peers.begin(), peers.begin() + kMostReported, peers.end(),
                     [](const auto& one, const auto& other) { return one.bytes[0] > other.bytes[0]; });
    peers.resize(kMostReported);
    return peers;
}

/// Sends the report if the launcher's queue has room. Returns false if the report is lost.
bool send() {
    const link::Process& me = link::self();
    const int error =
        control::ControlCall::start(me.job->segment(), me.rank, control::MessageKind::profile, report->payload, report->call);
    report->called = error == MPI_SUCCESS;
    clear_failure();
    return report->called || error == MPI_ERR_PENDING;
}

void end_report() {
    report->payload.clear();
    report->call = {};
}

}  // namespace

void report_run() {
    if (report || !is_wanted()) return;
    ProfileReport all;
    all.last = true;
    ProfileReport::PhaseRecord& run = all.phases.emplace_back();
    run.peers = sent_to_peers();
    control::sort(run);
    report = new RunReport;
    report->payload = control::encode(all);
    report->began = now_ns();
}

bool run_reported() {
    if (!report || report->payload.empty()) return true;
    bool done = now_ns() - report->began > kLongestReportNs;
    if (!done && !report->called) done = !send();
    if (!done && report->called) done = report->call.poll(done) != MPI_SUCCESS || done;
    clear_failure();
    if (done) end_report();
    return done;
}

}  // namespace starling::plan
