#include "collective/survivors/memory_agreements.h"

#include "collective/survivors/agreement_slot.h"
#include "comm/comm.h"
#include "link/failure_detector.h"
#include "link/job.h"
#include "message/channel.h"
#include "progress/engine.h"

namespace starling::collective {

namespace {

link::SegmentRegion region_of(const link::Process& process) {
    return link::SegmentRegion(process.job->segment().region(process.rank));
}

bool may_agree_in_memory(const comm::Group& members) { return members.size() >= 2 && message::share_segment(members); }

std::unique_ptr<MemoryAgreements> part_of(int me, const comm::Group& members, link::AgreementWords& words) {
    std::vector<job::Doorbell*> others;
    for (int i = 0; i < members.size(); ++i)
        if (i != me) others.push_back(&region_of(members.at(i)).doorbell());
    return std::make_unique<MemoryAgreements>(words, members.size(), std::move(others));
}

}  // namespace

std::unique_ptr<MemoryAgreements> MemoryAgreements::find(const comm::Group& members, int me, uint64_t context) {
    if (!may_agree_in_memory(members)) return nullptr;
    link::AgreementWords* const words = claim_words(region_of(members.at(0)), context);
    return words ? part_of(me, members, *words) : nullptr;
}

void MemoryAgreements::close_others(const comm::Group& members, int me, uint64_t context, MemoryAgreements* mine) {
    if (!may_agree_in_memory(members)) return;
    find_slot(region_of(members.at(0)), context, [&](link::AgreementWords& words) {
        if ((mine && &words == &mine->memory_) || !AgreementSlot(words, context).is_ours()) return false;
        part_of(me, members, words)->close();
        if (mine) mine->close();
        return false;
    });
}

void MemoryAgreements::leave(const comm::Group& members, int me, uint64_t context) {
    if (!may_agree_in_memory(members)) return;
    leave_words(region_of(members.at(0)), context, me, members.size(),
                [&](int member) { return link::is_known_to_have_ended(members.at(member)); });
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
