// Collective operations of a rank, and the plain model that their results are compared with.
#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "player.h"

namespace starling::simulation {

const char* name_of(Collective kind) {
    static constexpr const char* kNames[kCollectives] = {"barrier",        "bcast",   "reduce",    "allreduce",
                                                         "gather",         "scatter", "allgather", "alltoall",
                                                         "reduce_scatter", "scan",    "exscan"};
    return kNames[static_cast<int>(kind)];
}

void Player::take_part(const Step& step) {
    Pending& pending = begin(step);
    // If ranks may die, the operation must end, but its results are not checked.
    if (script_.mortal) pending.allowed = Allowed::anything;
    if (!script_.mortal) pending.check = [this](Pending& done, MPI_Status&) { check_collective(*done.step, done); };
    start_collective(step, pending);
    if (pending.request != MPI_REQUEST_NULL) return keep_or_wait(step);
    if (!script_.mortal) check_collective(step, pending);
    pending_.pop_back();
}

void Player::start_collective(const Step& step, Pending& pending) {
    const Community& community = script_.communities[step.comm];
    const int me = community.rank_of(me_), n = static_cast<int>(community.members.size());
    const bool one_for_each = step.collective == Collective::alltoall || step.collective == Collective::scatter ||
                              step.collective == Collective::reduce_scatter;
    const size_t blocks = one_for_each ? static_cast<size_t>(n) : 1;
    pending.out.resize(blocks * step.count * 8);
    for (size_t block = 0; block < blocks; ++block)
        for (uint32_t i = 0; i < step.count; ++i) {
            const uint64_t value = part_of(step, me, static_cast<int>(block), i);
            std::memcpy(pending.out.data() + (block * step.count + i) * 8, &value, 8);
        }
    pending.in.assign(static_cast<size_t>(n) * step.count * 8, '\x33');
    if (step.send == SendWay::persistent) return start_prepared(step, pending, comm(step));
    char *const out = pending.out.data(), *const in = pending.in.data();
    // A broadcast has one buffer for input and output.
    if (step.collective == Collective::bcast && me == step.from) std::copy(pending.out.begin(), pending.out.end(), in);
    ok(call_collective(step, {out, in, in, step.from, comm(step), &pending.request}), name_of(step.collective),
       pending.allowed);
}

int Player::call_collective(const Step& step, const CollectiveArguments& with) {
    const auto& [out, in, data, root, c, r] = with;
    const int count = static_cast<int>(step.count);
    const MPI_Datatype type = MPI_UINT64_T;
    const bool now = step.send == SendWay::send;
    int code = MPI_SUCCESS;
    switch (step.collective) {
        case Collective::barrier:
            code = now ? mpi_.Barrier(c) : mpi_.Ibarrier(c, r);
            break;
        case Collective::bcast:
            code = now ? mpi_.Bcast(data, count, type, root, c) : mpi_.Ibcast(data, count, type, root, c, r);
            break;
        case Collective::reduce:
            code = now ? mpi_.Reduce(out, in, count, type, MPI_SUM, root, c)
                       : mpi_.Ireduce(out, in, count, type, MPI_SUM, root, c, r);
            break;
        case Collective::allreduce:
            code =
                now ? mpi_.Allreduce(out, in, count, type, MPI_SUM, c) : mpi_.Iallreduce(out, in, count, type, MPI_SUM, c, r);
            break;
        case Collective::gather:
            code = now ? mpi_.Gather(out, count, type, in, count, type, root, c)
                       : mpi_.Igather(out, count, type, in, count, type, root, c, r);
            break;
        case Collective::scatter:
            code = now ? mpi_.Scatter(out, count, type, in, count, type, root, c)
                       : mpi_.Iscatter(out, count, type, in, count, type, root, c, r);
            break;
        case Collective::allgather:
            code = now ? mpi_.Allgather(out, count, type, in, count, type, c)
                       : mpi_.Iallgather(out, count, type, in, count, type, c, r);
            break;
        case Collective::alltoall:
            code = now ? mpi_.Alltoall(out, count, type, in, count, type, c)
                       : mpi_.Ialltoall(out, count, type, in, count, type, c, r);
            break;
        case Collective::reduce_scatter:
            code = now ? mpi_.Reduce_scatter_block(out, in, count, type, MPI_SUM, c)
                       : mpi_.Ireduce_scatter_block(out, in, count, type, MPI_SUM, c, r);
            break;
        case Collective::scan:
            code = now ? mpi_.Scan(out, in, count, type, MPI_SUM, c) : mpi_.Iscan(out, in, count, type, MPI_SUM, c, r);
            break;
        case Collective::exscan:
            code = now ? mpi_.Exscan(out, in, count, type, MPI_SUM, c) : mpi_.Iexscan(out, in, count, type, MPI_SUM, c, r);
            break;
    }
    return code;
}

/// Persistent collectives are started twice; the first start is awaited here.
void Player::start_prepared(const Step& step, Pending& pending, MPI_Comm c) {
    char *const out = pending.out.data(), *const in = pending.in.data();
    const int count = static_cast<int>(step.count), root = step.from;
    const MPI_Datatype type = MPI_UINT64_T;
    const MPI_Info none = MPI_INFO_NULL;
    MPI_Request* const r = &pending.request;
    int code = MPI_SUCCESS;
    switch (step.collective) {
        case Collective::barrier:
            code = mpi_.Barrier_init(c, none, r);
            break;
        case Collective::bcast:
            code = mpi_.Bcast_init(in, count, type, root, c, none, r);
            break;
        case Collective::reduce:
            code = mpi_.Reduce_init(out, in, count, type, MPI_SUM, root, c, none, r);
            break;
        case Collective::allreduce:
            code = mpi_.Allreduce_init(out, in, count, type, MPI_SUM, c, none, r);
            break;
        case Collective::gather:
            code = mpi_.Gather_init(out, count, type, in, count, type, root, c, none, r);
            break;
        case Collective::scatter:
            code = mpi_.Scatter_init(out, count, type, in, count, type, root, c, none, r);
            break;
        case Collective::allgather:
            code = mpi_.Allgather_init(out, count, type, in, count, type, c, none, r);
            break;
        case Collective::alltoall:
            code = mpi_.Alltoall_init(out, count, type, in, count, type, c, none, r);
            break;
        case Collective::reduce_scatter:
            code = mpi_.Reduce_scatter_block_init(out, in, count, type, MPI_SUM, c, none, r);
            break;
        case Collective::scan:
            code = mpi_.Scan_init(out, in, count, type, MPI_SUM, c, none, r);
            break;
        case Collective::exscan:
            code = mpi_.Exscan_init(out, in, count, type, MPI_SUM, c, none, r);
            break;
    }
    ok(code, "a persistent collective's preparation", pending.allowed);
    pending.persistent = true;
    for (int start = 0; start < 2; ++start) {
        pending.in.assign(pending.in.size(), '\x33');
        const bool has_all = step.collective == Collective::bcast && script_.communities[step.comm].rank_of(me_) == root;
        if (has_all) std::copy(pending.out.begin(), pending.out.end(), pending.in.begin());
        ok(mpi_.Start(r), "MPI_Start", pending.allowed);
        if (start == 0) ok(mpi_.Wait(r, MPI_STATUS_IGNORE), "MPI_Wait", pending.allowed);
    }
}

// The plain model: computes each rank's result from all contributions.
void Player::check_collective(const Step& step, Pending& pending) {
    const Community& community = script_.communities[step.comm];
    const int me = community.rank_of(me_), n = static_cast<int>(community.members.size());
    const auto sum = [&](int end, int to, uint32_t i) {
        uint64_t all = 0;
        for (int from = 0; from < end; ++from) all += part_of(step, from, to, i);
        return all;
    };
    const auto expect = [&](int block, const auto& wanted) {
        for (uint32_t i = 0; i < step.count; ++i) {
            uint64_t got;
            std::memcpy(&got, pending.in.data() + (static_cast<size_t>(block) * step.count + i) * 8, 8);
            if (got != wanted(i))
                fail_run("%s of step %u: element %u of block %d is %" PRIx64 ", should be %" PRIx64, name_of(step.collective),
                         step.id, i, block, got, static_cast<uint64_t>(wanted(i)));
        }
    };
    const bool root = me == step.from;
    switch (step.collective) {
        case Collective::barrier:
            return;
        case Collective::bcast:
            return expect(0, [&](uint32_t i) { return part_of(step, step.from, 0, i); });
        case Collective::scatter:
            return expect(0, [&](uint32_t i) { return part_of(step, step.from, me, i); });
        case Collective::reduce:
            if (!root) return;
            [[fallthrough]];
        case Collective::allreduce:
            return expect(0, [&](uint32_t i) { return sum(n, 0, i); });
        case Collective::reduce_scatter:
            return expect(0, [&](uint32_t i) { return sum(n, me, i); });
        case Collective::scan:
            return expect(0, [&](uint32_t i) { return sum(me + 1, 0, i); });
        case Collective::exscan:
            if (me == 0) return;
            return expect(0, [&](uint32_t i) { return sum(me, 0, i); });
        case Collective::gather:
            if (!root) return;
            [[fallthrough]];
        case Collective::allgather:
            for (int from = 0; from < n; ++from) expect(from, [&](uint32_t i) { return part_of(step, from, 0, i); });
            return;
        case Collective::alltoall:
            for (int from = 0; from < n; ++from) expect(from, [&](uint32_t i) { return part_of(step, from, me, i); });
            return;
    }
}

}  // namespace starling::simulation
