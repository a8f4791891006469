#include "plan/found_phases.h"

#include <algorithm>
#include <string>

#include "base/state.h"
#include "link/job.h"
#include "plan/phase_detector.h"
#include "profile/collectives.h"
#include "profile/phase.h"
#include "profile/traffic.h"

namespace starling::plan {

namespace {

class Seeker {
  public:
    void call(uint64_t site, uint64_t communicator) {
        if (!off_ && finder_.call(site, communicator)) end_segment();
    }
    /// Restarts the counts of sent messages at 0. A phase marked by the program ends the detection.
    void phase_begins(profile::PhaseId begun) {
        before_.clear();
        const profile::PhaseMark mark = profile::phase(begun).mark;
        off_ = off_ || (!begins_one_ && (mark == profile::PhaseMark::program || mark == profile::PhaseMark::pcontrol));
    }

  private:
    void end_segment();
    Partners sent_since();

    PhaseDetector finder_;
    std::vector<uint64_t> before_;  ///< messages to each process before this segment, in the order of each_traffic()
    bool begins_one_ = false;
    bool off_ = false;
};
STARLING_STATE Seeker* seeker = nullptr;

Partners Seeker::sent_since() {
    struct PartnerScan {
        std::vector<uint64_t>& before;
        size_t at = 0;
        Partners sent = {};
    } look{before_};
    // each_traffic() visits processes in the same order as for the last segment: new processes are appended, and none is removed before the
    // phase ends.
    profile::each_traffic(
        [](const profile::Traffic& traffic, void* argument) {
            PartnerScan& look = *static_cast<PartnerScan*>(argument);
            if (look.at == look.before.size()) look.before.push_back(0);
            const uint64_t messages = traffic.messages() - look.before[look.at];
            look.before[look.at++] += messages;
            const bool own = traffic.job == link::self().job->address().id && traffic.rank == link::self().rank;
            if (messages == 0 || own) return;
            look.sent.push_back({traffic.job, traffic.rank, static_cast<uint32_t>(std::min<uint64_t>(messages, UINT32_MAX))});
        },
        &look);
    return look.sent;
}

void Seeker::end_segment() {
    const std::optional<uint32_t> phase = finder_.segment(sent_since());
    if (!phase) return;
    begins_one_ = true;
    profile::begin_phase(*phase == 0 ? std::string() : "found " + std::to_string(*phase), profile::PhaseMark::found);
    begins_one_ = false;
}

}  // namespace

void find_phases() {
    seeker = new Seeker;
    profile::listen_to_phases([](profile::PhaseId, profile::PhaseId begun) { seeker->phase_begins(begun); });
    profile::listen_to_collectives(
        [](uint64_t site, uint64_t communicator, uint32_t, const char*) { seeker->call(site, communicator); });
}

}  // namespace starling::plan
