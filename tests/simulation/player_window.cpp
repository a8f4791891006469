// Windows: all ranks of a communicator draw the same sequence of epochs of all kinds. If some ranks die, the others continue, and accesses
// between survivors must still take effect.
#include <algorithm>
#include <cstdio>
#include <deque>

#include "memory_model.h"
#include "player.h"

namespace starling::simulation {

namespace {

enum class Epoch { fence, lock_each, lock_all, groups };

constexpr Do kDoes[] = {Do::put, Do::strided_put, Do::add_all, Do::get, Do::add_shared, Do::ticket, Do::swap};

}  // namespace

/// State of a window during the step that uses it.
struct Player::WindowUse {
    MPI_Win win = MPI_WIN_NULL;
    MPI_Comm comm;
    MPI_Group group = MPI_GROUP_NULL;
    MemoryModel& model;
    int me;
    uint64_t* memory = nullptr;
    std::vector<uint64_t> created;
    /// An access of the epoch, with its buffer.
    struct Buffer {
        Act act;
        std::vector<uint64_t> data, result;
        bool good = true;  ///< whether no call for the access failed
    };
    std::deque<Buffer> buffers;
    std::vector<Act> acts;  ///< accesses of all members in the epoch
    Allowed allowed;        ///< errors allowed in calls that involve all members
    bool failed = false;    ///< whether a call of the epoch failed in an allowed way
    /// By dead rank: the last epoch in which it may have accessed memory.
    std::map<int, uint32_t> lost;
};

// A call may fail only if its target is doomed. The rank may still call that target later.
void Player::act_on_window(const Step& step, WindowUse& use, int target_lock) {
    auto& [act, data, result, good] = use.buffers.back();
    const MemoryModel& model = use.model;
    const auto count = static_cast<int>(model.words);
    const auto area = static_cast<MPI_Aint>(model.area_of(use.me));
    data.resize(model.words);
    for (uint32_t i = 0; i < model.words; ++i) data[i] = word(act.id, i);
    result.assign(model.words, 0x3333);
    const MPI_Datatype type = MPI_UINT64_T;
    const int to = act.target;
    const Allowed allowed = with(step, to);
    const auto check = [&](int code, const char* what) { good = ok(code, what, allowed) && good; };
    if (target_lock) check(mpi_.Win_lock(target_lock, to, 0, use.win), "MPI_Win_lock");
    if (!good) return;
    MPI_Datatype strided;
    switch (act.what) {
        case Do::put:
            check(mpi_.Put(data.data(), count, type, to, area, count, type, use.win), "MPI_Put");
            break;
        case Do::strided_put:
            ok(mpi_.Type_vector(count / 2, 1, 2, type, &strided), "MPI_Type_vector");
            ok(mpi_.Type_commit(&strided), "MPI_Type_commit");
            check(mpi_.Put(data.data(), count / 2, type, to, area, 1, strided, use.win), "MPI_Put, strided");
            ok(mpi_.Type_free(&strided), "MPI_Type_free");
            break;
        case Do::add_all:
            check(mpi_.Accumulate(data.data(), count, type, to, area, count, type, MPI_SUM, use.win), "MPI_Accumulate");
            break;
        case Do::get:
            check(mpi_.Get(result.data(), count, type, to, area, count, type, use.win), "MPI_Get");
            break;
        case Do::add_shared:
            check(mpi_.Accumulate(data.data(), 1, type, to, static_cast<MPI_Aint>(model.shared_word(act.id)), 1, type, MPI_SUM,
                                  use.win),
                  "MPI_Accumulate");
            break;
        case Do::ticket:
            data[0] = 1;
            check(mpi_.Fetch_and_op(data.data(), result.data(), type, to, static_cast<MPI_Aint>(model.ticket_word()), MPI_SUM,
                                    use.win),
                  "MPI_Fetch_and_op");
            break;
        case Do::swap:
            data[0] = act.id;
            data[1] = act.was;
            check(mpi_.Compare_and_swap(data.data(), &data[1], result.data(), type, to,
                                        static_cast<MPI_Aint>(model.swap_word(use.me)), use.win),
                  "MPI_Compare_and_swap");
            break;
        case Do::put_signal:
        case Do::locked:
            break;  // OpenSHMEM's
    }
    if (target_lock) check(mpi_.Win_unlock(to, use.win), "MPI_Win_unlock");
}

void Player::in_epoch(WindowUse& use, int code, const char* what) { use.failed |= !ok(code, what, use.allowed); }

void Player::play_epoch(const Step& step, WindowUse& use, int kind, bool closes_by_flush) {
    const auto epoch = static_cast<Epoch>(kind);
    const std::vector<WindowUse::Buffer> mine(use.buffers.begin(), use.buffers.end());
    use.buffers.clear();
    use.failed = false;
    if (epoch == Epoch::fence) in_epoch(use, mpi_.Win_fence(0, use.win), "MPI_Win_fence");
    if (epoch == Epoch::lock_all) in_epoch(use, mpi_.Win_lock_all(0, use.win), "MPI_Win_lock_all");
    if (epoch == Epoch::groups) {
        in_epoch(use, mpi_.Win_post(use.group, 0, use.win), "MPI_Win_post");
        in_epoch(use, mpi_.Win_start(use.group, 0, use.win), "MPI_Win_start");
    }
    for (const WindowUse::Buffer& each : mine) {
        use.buffers.push_back(each);
        const int kind_of_lock = each.act.id & 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
        act_on_window(step, use, epoch == Epoch::lock_each ? kind_of_lock : 0);
        if (epoch == Epoch::lock_all && closes_by_flush)
            use.buffers.back().good &=
                ok(mpi_.Win_flush(each.act.target, use.win), "MPI_Win_flush", with(step, each.act.target));
    }
    if (epoch == Epoch::fence) in_epoch(use, mpi_.Win_fence(MPI_MODE_NOSUCCEED, use.win), "MPI_Win_fence");
    if (epoch == Epoch::lock_all) in_epoch(use, mpi_.Win_unlock_all(use.win), "MPI_Win_unlock_all");
    if (epoch == Epoch::groups) {
        in_epoch(use, mpi_.Win_complete(use.win), "MPI_Win_complete");
        in_epoch(use, mpi_.Win_wait(use.win), "MPI_Win_wait");
    }
    if (!script_.mortal) ok(mpi_.Barrier(use.comm), "MPI_Barrier");
}

// Meets all other ranks, and records those that do not take part as dead. No rank can be past the next meeting, because this rank takes
// part in that too.
void Player::hear_of_deaths(const Step& step, WindowUse& use, uint32_t last_epoch) {
    const std::vector<int> words = meet(step, 0);
    for (int rank = 0; rank < use.model.n; ++rank)
        if (words[static_cast<size_t>(rank)] < 0) use.lost.try_emplace(rank, last_epoch);
}

void Player::apply(WindowUse& use, uint32_t epoch) {
    for (const Act& act : use.acts) {
        const auto lost = use.lost.find(act.origin);
        if (lost == use.lost.end())
            use.model.apply(act);
        else if (epoch <= lost->second)
            use.model.may_apply(act);
    }
}

void Player::check_window(const Step& step, WindowUse& use, uint32_t epoch, const char* name) {
    MemoryModel& model = use.model;
    if (script_.mortal) hear_of_deaths(step, use, epoch);
    char what[60];
    std::snprintf(what, sizeof what, "%s of step %u", name, step.id);
    const auto check_results = [&](bool later) {
        for (const auto& [act, data, result, good] : use.buffers) {
            const bool doomed = with(step, act.target) != Allowed::nothing;
            if (!good || (use.failed && doomed)) continue;
            Act known = act;
            // Tickets that others drew at a doomed rank may have failed, and the model has counted them.
            if (doomed && act.what == Do::ticket) known.was = 0;
            check_result(model, known, result, later, what);
        }
    };
    check_results(false);
    apply(use, epoch);
    check_results(true);
    ok(mpi_.Win_lock(MPI_LOCK_SHARED, use.me, 0, use.win), "MPI_Win_lock");
    check_memory(model, use.memory, what);
    ok(mpi_.Win_unlock(use.me, use.win), "MPI_Win_unlock");
    use.buffers.clear();
    if (script_.mortal) return hear_of_deaths(step, use, epoch + 1);
    ok(mpi_.Barrier(use.comm), "MPI_Barrier");
}

// If error markers do not fit into eager messages (message/error_marker.h), members learn only that something failed, not what.
Player::Allowed Player::for_all_of_window() const {
    const bool has_marks = !script_.has_setting("STARLING_EAGER_LIMIT", "0");
    if (!script_.mortal) return Allowed::nothing;
    return has_marks ? Allowed::death : Allowed::anything;
}

bool Player::make_window(const Step& step, WindowUse& use) {
    const auto bytes = static_cast<MPI_Aint>(use.model.size() * 8);
    if (step.any_tag) {
        use.created.assign(use.model.size(), 0);
        use.memory = use.created.data();
        if (!ok(mpi_.Win_create(use.memory, bytes, 8, MPI_INFO_NULL, use.comm, &use.win), "MPI_Win_create", use.allowed))
            return false;
    } else {
        if (!ok(mpi_.Win_allocate(bytes, 8, MPI_INFO_NULL, use.comm, &use.memory, &use.win), "MPI_Win_allocate", use.allowed))
            return false;
        std::fill(use.memory, use.memory + use.model.size(), 0);
    }
    if (script_.mortal) ok(mpi_.Win_set_errhandler(use.win, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
    return true;
}

// After a death some members may have the window and others not (docs/design.md), so the program exchanges its results. All survivors see
// the results of all survivors.
bool Player::all_have_made(const Step& step, WindowUse& use, bool made) {
    const std::vector<int> words = meet(step, made);
    bool all = true;
    for (int rank = 0; rank < use.model.n; ++rank) {
        const int word = words[static_cast<size_t>(rank)];
        if (word < 0) use.lost.try_emplace(rank, 0);
        if (with(step, rank) == Allowed::nothing && word != 1) all = false;
    }
    if (all && !made) die();
    return all;
}

void Player::use_window(const Step& step) {
    static constexpr const char* kNames[] = {"fences", "locks", "locks of all", "groups"};
    const Community& community = script_.communities[step.comm];
    MemoryModel model(script_.seed, step, static_cast<int>(community.members.size()), community.rank_of(me_));
    WindowUse use{.comm = comm(step),
                  .model = model,
                  .me = model.me,
                  .created = {},
                  .buffers = {},
                  .acts = {},
                  .allowed = for_all_of_window(),
                  .lost = {}};
    const bool made = make_window(step, use);
    if (script_.mortal && !all_have_made(step, use, made)) {
        if (made) ok(mpi_.Win_free(&use.win), "MPI_Win_free", use.allowed);
        return;
    }
    ok(mpi_.Comm_group(use.comm, &use.group), "MPI_Comm_group");
    if (!script_.mortal) ok(mpi_.Barrier(use.comm), "MPI_Barrier");
    for (uint32_t i = 0; i < step.count; ++i) {
        const auto epoch = static_cast<Epoch>(model.random.below(4));
        use.acts = model.draw(kDoes);
        for (const Act& act : use.acts)
            if (act.origin == use.me) use.buffers.push_back({act, {}, {}});
        play_epoch(step, use, static_cast<int>(epoch), i % 2);
        check_window(step, use, i, kNames[static_cast<int>(epoch)]);
    }
    ok(mpi_.Group_free(&use.group), "MPI_Group_free");
    ok(mpi_.Win_free(&use.win), "MPI_Win_free", use.allowed);
}

}  // namespace starling::simulation
