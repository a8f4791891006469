// Collective operations of an inter-communicator: each group receives what the other one contributes. In operations with a root, the
// root's group is that of the step's first entry, and only the other group contributes or receives besides the root.
#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "player.h"

namespace starling::simulation {

namespace {

bool has_block_for_each(Collective kind) { return kind == Collective::alltoall || kind == Collective::scatter; }

}  // namespace

Player::AcrossPart Player::across_part(const Step& step) const {
    const Community& community = script_.communities[step.comm];
    const int rank = community.rank_of(me_);
    AcrossPart part{rank >= 0 ? community.remote : community.members, rank, step.from};
    if (rank >= 0)
        part.root = rank == step.from ? MPI_ROOT : MPI_PROC_NULL;
    else
        part.rank = script_.communities[community.second ? step.comm - 1 : step.comm + 1].rank_of(me_);
    return part;
}

void Player::take_part_across(const Step& step) {
    const AcrossPart part = across_part(step);
    Pending& pending = begin(step);
    pending.check = [this](Pending& done, MPI_Status&) { check_across(*done.step, done); };
    const size_t blocks = has_block_for_each(step.collective) ? part.others.size() : 1;
    pending.out.resize(blocks * step.count * 8);
    for (size_t block = 0; block < blocks; ++block)
        for (uint32_t i = 0; i < step.count; ++i) {
            const uint64_t value = part_of(step, static_cast<int>(me_), static_cast<int>(block), i);
            std::memcpy(pending.out.data() + (block * step.count + i) * 8, &value, 8);
        }
    pending.in.assign(part.others.size() * step.count * 8, '\x33');
    start_across(step, part.root, pending);
    if (pending.request != MPI_REQUEST_NULL) return keep_or_wait(step);
    check_across(step, pending);
    pending_.pop_back();
}

void Player::start_across(const Step& step, int root, Pending& pending) {
    char *const out = pending.out.data(), *const in = pending.in.data();
    char* const data = root == MPI_ROOT ? out : in;
    ok(call_collective(step, {out, in, data, root, comm(step), &pending.request}), name_of(step.collective));
}

void Player::check_across(const Step& step, const Pending& pending) {
    const AcrossPart part = across_part(step);
    const bool has_root = step.collective == Collective::bcast || step.collective == Collective::scatter ||
                          step.collective == Collective::reduce || step.collective == Collective::gather;
    const bool root_sends = step.collective == Collective::bcast || step.collective == Collective::scatter;
    const bool receives = !has_root || (root_sends ? part.root >= 0 : part.root == MPI_ROOT);
    if (!receives || step.collective == Collective::barrier) return;
    const int to = has_block_for_each(step.collective) ? part.rank : 0;
    const auto from = [&](size_t other, uint32_t i) { return part_of(step, static_cast<int>(part.others[other]), to, i); };
    const auto expect = [&](size_t block, const auto& wanted) {
        for (uint32_t i = 0; i < step.count; ++i) {
            uint64_t got;
            std::memcpy(&got, pending.in.data() + (block * step.count + i) * 8, 8);
            if (got != wanted(i))
                fail_run("%s of step %u across: element %u of block %zu is %" PRIx64 ", should be %" PRIx64,
                         name_of(step.collective), step.id, i, block, got, static_cast<uint64_t>(wanted(i)));
        }
    };
    if (root_sends) return expect(0, [&](uint32_t i) { return from(static_cast<size_t>(step.from), i); });
    if (step.collective == Collective::reduce || step.collective == Collective::allreduce)
        return expect(0, [&](uint32_t i) {
            uint64_t sum = 0;
            for (size_t other = 0; other < part.others.size(); ++other) sum += from(other, i);
            return sum;
        });
    for (size_t other = 0; other < part.others.size(); ++other) expect(other, [&](uint32_t i) { return from(other, i); });
}

}  // namespace starling::simulation
