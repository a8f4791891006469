// Windows: a program of epochs of all kinds that all ranks of a communicator draw alike.
#include <cstdio>
#include <deque>

#include "memory_model.h"
#include "player.h"

namespace starling::simulation {

namespace {

enum class Epoch { fence, lock_each, lock_all, groups };

constexpr Do kDoes[] = {Do::put, Do::strided_put, Do::add_all, Do::get, Do::add_shared, Do::ticket, Do::swap};

}  // namespace

/// A window while a step uses it.
struct Player::WindowUse {
    MPI_Win win = MPI_WIN_NULL;
    MPI_Comm comm;
    MPI_Group group = MPI_GROUP_NULL;
    MemoryModel& model;
    int me;
    uint64_t* memory = nullptr;
    std::vector<uint64_t> created;
    /// Buffers of the epoch.
    struct Buffer {
        Act act;
        std::vector<uint64_t> data, result;
    };
    std::deque<Buffer> buffers;
    std::vector<Act> acts;  ///< of all members in the epoch
};

void Player::act_on_window(WindowUse& use, int target_lock) {
    auto& [act, data, result] = use.buffers.back();
    const MemoryModel& model = use.model;
    const auto count = static_cast<int>(model.words);
    const auto area = static_cast<MPI_Aint>(model.area_of(use.me));
    data.resize(model.words);
    for (uint32_t i = 0; i < model.words; ++i) data[i] = word(act.id, i);
    result.assign(model.words, 0x3333);
    const MPI_Datatype type = MPI_UINT64_T;
    const int to = act.target;
    if (target_lock) ok(mpi_.Win_lock(target_lock, to, 0, use.win), "MPI_Win_lock");
    MPI_Datatype strided;
    switch (act.what) {
        case Do::put:
            ok(mpi_.Put(data.data(), count, type, to, area, count, type, use.win), "MPI_Put");
            break;
        case Do::strided_put:
            ok(mpi_.Type_vector(count / 2, 1, 2, type, &strided), "MPI_Type_vector");
            ok(mpi_.Type_commit(&strided), "MPI_Type_commit");
            ok(mpi_.Put(data.data(), count / 2, type, to, area, 1, strided, use.win), "MPI_Put, strided");
            ok(mpi_.Type_free(&strided), "MPI_Type_free");
            break;
        case Do::add_all:
            ok(mpi_.Accumulate(data.data(), count, type, to, area, count, type, MPI_SUM, use.win), "MPI_Accumulate");
            break;
        case Do::get:
            ok(mpi_.Get(result.data(), count, type, to, area, count, type, use.win), "MPI_Get");
            break;
        case Do::add_shared:
            ok(mpi_.Accumulate(data.data(), 1, type, to, static_cast<MPI_Aint>(model.shared_word(act.id)), 1, type, MPI_SUM,
                               use.win),
               "MPI_Accumulate");
            break;
        case Do::ticket:
            data[0] = 1;
            ok(mpi_.Fetch_and_op(data.data(), result.data(), type, to, static_cast<MPI_Aint>(model.ticket_word()), MPI_SUM,
                                 use.win),
               "MPI_Fetch_and_op");
            break;
        case Do::swap:
            data[0] = act.id;
            data[1] = act.was;
            ok(mpi_.Compare_and_swap(data.data(), &data[1], result.data(), type, to,
                                     static_cast<MPI_Aint>(model.swap_word(use.me)), use.win),
               "MPI_Compare_and_swap");
            break;
        case Do::put_signal:
        case Do::locked:
            break;  // OpenSHMEM's
    }
    if (target_lock) ok(mpi_.Win_unlock(to, use.win), "MPI_Win_unlock");
}

void Player::play_epoch(WindowUse& use, int kind, bool closes_by_flush) {
    const auto epoch = static_cast<Epoch>(kind);
    const std::vector<WindowUse::Buffer> mine(use.buffers.begin(), use.buffers.end());
    use.buffers.clear();
    if (epoch == Epoch::fence) ok(mpi_.Win_fence(0, use.win), "MPI_Win_fence");
    if (epoch == Epoch::lock_all) ok(mpi_.Win_lock_all(0, use.win), "MPI_Win_lock_all");
    if (epoch == Epoch::groups) {
        ok(mpi_.Win_post(use.group, 0, use.win), "MPI_Win_post");
        ok(mpi_.Win_start(use.group, 0, use.win), "MPI_Win_start");
    }
    for (const WindowUse::Buffer& each : mine) {
        use.buffers.push_back(each);
        const int kind_of_lock = each.act.id & 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
        act_on_window(use, epoch == Epoch::lock_each ? kind_of_lock : 0);
        if (epoch == Epoch::lock_all && closes_by_flush) ok(mpi_.Win_flush(each.act.target, use.win), "MPI_Win_flush");
    }
    if (epoch == Epoch::fence) ok(mpi_.Win_fence(MPI_MODE_NOSUCCEED, use.win), "MPI_Win_fence");
    if (epoch == Epoch::lock_all) ok(mpi_.Win_unlock_all(use.win), "MPI_Win_unlock_all");
    if (epoch == Epoch::groups) {
        ok(mpi_.Win_complete(use.win), "MPI_Win_complete");
        ok(mpi_.Win_wait(use.win), "MPI_Win_wait");
    }
    ok(mpi_.Barrier(use.comm), "MPI_Barrier");
}

void Player::check_window(const Step& step, WindowUse& use, const char* epoch) {
    MemoryModel& model = use.model;
    char what[60];
    std::snprintf(what, sizeof what, "%s of step %u", epoch, step.id);
    for (const auto& [act, data, result] : use.buffers) check_result(model, act, result, false, what);
    for (const Act& act : use.acts) model.apply(act);
    for (const auto& [act, data, result] : use.buffers) check_result(model, act, result, true, what);
    ok(mpi_.Win_lock(MPI_LOCK_SHARED, use.me, 0, use.win), "MPI_Win_lock");
    check_memory(model, use.memory, what);
    ok(mpi_.Win_unlock(use.me, use.win), "MPI_Win_unlock");
    use.buffers.clear();
    ok(mpi_.Barrier(use.comm), "MPI_Barrier");
}

void Player::use_window(const Step& step) {
    static constexpr const char* kNames[] = {"fences", "locks", "locks of all", "groups"};
    const Community& community = script_.communities[step.comm];
    MemoryModel model(script_.seed, step, static_cast<int>(community.members.size()), community.rank_of(me_));
    WindowUse use{.comm = comm(step), .model = model, .me = model.me, .created = {}, .buffers = {}, .acts = {}};
    const auto bytes = static_cast<MPI_Aint>(model.size() * 8);
    if (step.any_tag) {
        use.created.assign(model.size(), 0);
        use.memory = use.created.data();
        ok(mpi_.Win_create(use.memory, bytes, 8, MPI_INFO_NULL, use.comm, &use.win), "MPI_Win_create");
    } else {
        ok(mpi_.Win_allocate(bytes, 8, MPI_INFO_NULL, use.comm, &use.memory, &use.win), "MPI_Win_allocate");
        std::fill(use.memory, use.memory + model.size(), 0);
    }
    ok(mpi_.Comm_group(use.comm, &use.group), "MPI_Comm_group");
    ok(mpi_.Barrier(use.comm), "MPI_Barrier");
    for (uint32_t i = 0; i < step.count; ++i) {
        const auto epoch = static_cast<Epoch>(model.random.below(4));
        use.acts = model.draw(kDoes);
        for (const Act& act : use.acts)
            if (act.origin == use.me) use.buffers.push_back({act, {}, {}});
        play_epoch(use, static_cast<int>(epoch), i % 2);
        check_window(step, use, kNames[static_cast<int>(epoch)]);
    }
    ok(mpi_.Group_free(&use.group), "MPI_Group_free");
    ok(mpi_.Win_free(&use.win), "MPI_Win_free");
}

}  // namespace starling::simulation
