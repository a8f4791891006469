#include "collective/survivors/memory_agreements.h"

#include "comm/comm.h"
#include "link/job.h"
#include "message/channel.h"
#include "progress/engine.h"

namespace starling::collective {

namespace {

link::SegmentRegion region_of(const link::Process& process) {
    return link::SegmentRegion(process.job->segment().region(process.rank));
}

}  // namespace

std::unique_ptr<MemoryAgreements> MemoryAgreements::find(const comm::Group& members, int me, uint64_t context) {
    if (members.size() < 2 || !message::share_segment(members)) return nullptr;
    link::AgreementWords* const words = claim_words(region_of(members.at(0)), context);
    if (!words) return nullptr;
    std::vector<job::Doorbell*> others;
    for (int i = 0; i < members.size(); ++i)
        if (i != me) others.push_back(&region_of(members.at(i)).doorbell());
    return std::make_unique<MemoryAgreements>(*words, members.size(), std::move(others));
}

void MemoryAgreements::wake_others() const {
    for (job::Doorbell* const doorbell : others_) job::ring(*doorbell);
}

void MemoryAgreements::close() {
    if (!words_.close()) return;
    wake_others();
    progress::notify();
}

void MemoryAgreements::vote(uint32_t number, int32_t flag) {
    words_.add_flag(flag);
    if (!words_.arrive()) return;
    words_.store_result(comm::new_context());
    words_.clear_votes();
    if (words_.decide(number)) wake_others();
}

}  // namespace starling::collective
