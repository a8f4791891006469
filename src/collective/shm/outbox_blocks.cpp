#include "collective/shm/outbox_blocks.h"

#include <algorithm>

#include "link/peer.h"
#include "link/transports.h"
#include "progress/blocking_wait.h"

namespace starling::collective {

/// Bytes of the outbox in use where ranks share cores: the rotations of all ranks of a core together should fit its caches. With a core of
/// its own a rank uses the whole outbox, since the readers' caches should have lost a buffer before it is written again.
static constexpr uint32_t kCrowdedWindow = 512u << 10;

bool has_terminated(const link::Process& process) {
    if (process.job->dead()) return true;
    if (!process.job->segment().header().recovers) return false;
    const link::Peer* peer = process.job->find_peer(process.rank);
    return peer && peer->dead;
}

NodeLender::NodeLender(const NodeLayout& layout, std::vector<link::Process> participants, int64_t offset, AreaUse use,
                       bool leads)
    : layout_(layout), participants_(std::move(participants)), offset_(offset), use_(use), leads_(leads) {
    for (const link::Process& process : participants_) holds_.emplace_back(process.job);
}

NodeLender::~NodeLender() {
    if (offset_ == kNoArea) return;
    layout_.detached().fetch_add(1);
    if (leads_) retire_area(offset_, static_cast<int>(participants_.size()), use_);
}

std::byte* NodeLender::allocate(uint32_t bytes, uint64_t number, uint32_t finished, uint32_t& place) {
    pass(number, finished);
    uint32_t offset = 0;
    const auto window = progress::core_is_crowded() ? kCrowdedWindow : static_cast<uint32_t>(link::kOutboxBytes);
    std::byte* room = link::shared_memory().lending().allocate(*this, bytes, number, window, offset);
    place = room ? offset + 1 : NodeLayout::kNowhere;
    return room;
}

void NodeLender::update_back() {
    uint64_t least = ~uint64_t{0};
    for (size_t i = 0; i < participants_.size(); ++i)
        if (!has_terminated(participants_[i])) least = std::min(least, whole(layout_.done(static_cast<int>(i)).load()));
    set_back(least);
}

}  // namespace starling::collective
