// Windows: a program of epochs of all kinds that all ranks of a communicator draw alike, and the plain model of what is in each one's
// memory after each epoch. What ranks do to one target at a time the standard allows: each has an area of its own there, and
// what they share is changed by updates of one kind.
#include <cinttypes>
#include <deque>

#include "player.h"

namespace starling::simulation {

namespace {

enum class Epoch { fence, lock_each, lock_all, groups };
enum class Do { put, strided_put, add_all, get, add_shared, ticket, swap };

struct Act {
    Do what;
    int origin, target;
    uint64_t id;       ///< what its data is made of
    uint64_t was = 0;  ///< swap: what is there; ticket: how many were drawn before the epoch
};

constexpr int kShared = 3;

/// The program, and memory as it must be: in words.
class Model {
  public:
    Model(uint64_t seed, const Step& step, int members)
        : n(members), words(kSizes[mix(seed + step.id) % 4]), random_(mix(seed) ^ step.id), memory_(static_cast<size_t>(n)) {
        for (auto& each : memory_) each.assign(size(), 0);
    }
    size_t size() const { return static_cast<size_t>(n) * (words + 1) + kShared + 1; }
    size_t area_of(int origin) const { return static_cast<size_t>(origin) * words; }
    size_t shared_word(uint64_t id) const { return static_cast<size_t>(n) * words + id % kShared; }
    size_t ticket_word() const { return static_cast<size_t>(n) * words + kShared; }
    size_t swap_word(int origin) const { return ticket_word() + 1 + static_cast<size_t>(origin); }
    uint64_t at(int rank, size_t index) const { return memory_[static_cast<size_t>(rank)][index]; }

    /// What the members do in the next epoch: of what could meet in one place each pair does one thing.
    std::vector<Act> draw_epoch(Epoch& epoch) {
        epoch = static_cast<Epoch>(random_.below(4));
        std::vector<Act> acts;
        std::vector<bool> area(static_cast<size_t>(n * n)), swapped(static_cast<size_t>(n * n));
        const uint64_t count = random_.between(0, 4 * static_cast<uint64_t>(n));
        for (uint64_t i = 0; i < count; ++i) {
            Act act{static_cast<Do>(random_.below(7)), static_cast<int>(random_.below(static_cast<uint64_t>(n))),
                    static_cast<int>(random_.below(static_cast<uint64_t>(n))), random_.next() | 1};
            const auto pair = static_cast<size_t>(act.origin * n + act.target);
            if (act.what <= Do::get) {
                if (area[pair]) continue;
                area[pair] = true;
            }
            if (act.what == Do::swap) {
                if (swapped[pair]) continue;
                swapped[pair] = true;
                act.was = at(act.target, swap_word(act.origin));
            }
            if (act.what == Do::ticket) act.was = at(act.target, ticket_word());
            acts.push_back(act);
        }
        return acts;
    }

    void apply(const Act& act) {
        std::vector<uint64_t>& target = memory_[static_cast<size_t>(act.target)];
        const size_t area = area_of(act.origin);
        for (uint32_t i = 0; i < words; ++i) {
            if (act.what == Do::put) target[area + i] = word(act.id, i);
            if (act.what == Do::strided_put && i % 2 == 0) target[area + i] = word(act.id, i / 2);
            if (act.what == Do::add_all) target[area + i] += word(act.id, i);
        }
        if (act.what == Do::add_shared) target[shared_word(act.id)] += word(act.id, 0);
        if (act.what == Do::ticket) ++target[ticket_word()];
        if (act.what == Do::swap) target[swap_word(act.origin)] = act.id;
    }

    const int n;
    const uint32_t words;  ///< of each one's area at each

  private:
    static constexpr uint32_t kSizes[] = {2, 40, 700, 5000};
    Random random_;
    std::vector<std::vector<uint64_t>> memory_;
};

}  // namespace

/// A window while a step uses it.
struct Player::WindowUse {
    MPI_Win win = MPI_WIN_NULL;
    MPI_Comm comm;
    MPI_Group group = MPI_GROUP_NULL;
    Model& model;
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
    const Model& model = use.model;
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

void Player::check_window(const Step& step, WindowUse& use, const char* what) {
    Model& model = use.model;
    // What was got is what was there before the epoch, in the area that nobody else writes to.
    for (const auto& [act, data, result] : use.buffers) {
        for (uint32_t i = 0; act.what == Do::get && i < model.words; ++i)
            if (const uint64_t there = model.at(act.target, model.area_of(use.me) + i); result[i] != there)
                fail_run("%s of step %u: word %u got from %d is %" PRIx64 ", should be %" PRIx64, what, step.id, i, act.target,
                         result[i], there);
        if (act.what == Do::swap && result[0] != act.was)
            fail_run("%s of step %u: a swap at %d found %" PRIx64 ", should be %" PRIx64, what, step.id, act.target, result[0],
                     act.was);
    }
    for (const Act& act : use.acts) model.apply(act);
    for (const auto& [act, data, result] : use.buffers)
        if (act.what == Do::ticket && (result[0] < act.was || result[0] >= model.at(act.target, model.ticket_word())))
            fail_run("%s of step %u: ticket %" PRIu64 " at %d was not drawn there", what, step.id, result[0], act.target);
    ok(mpi_.Win_lock(MPI_LOCK_SHARED, use.me, 0, use.win), "MPI_Win_lock");
    for (size_t i = 0; i < model.size(); ++i)
        if (use.memory[i] != model.at(use.me, i))
            fail_run("%s of step %u: word %zu of the window is %" PRIx64 ", should be %" PRIx64, what, step.id, i,
                     use.memory[i], model.at(use.me, i));
    ok(mpi_.Win_unlock(use.me, use.win), "MPI_Win_unlock");
    use.buffers.clear();
    ok(mpi_.Barrier(use.comm), "MPI_Barrier");
}

void Player::use_window(const Step& step) {
    static constexpr const char* kNames[] = {"fences", "locks", "locks of all", "groups"};
    const Community& community = script_.communities[step.comm];
    Model model(script_.seed, step, static_cast<int>(community.members.size()));
    WindowUse use{.comm = comm(step), .model = model, .me = community.rank_of(me_), .created = {}, .buffers = {}, .acts = {}};
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
        Epoch epoch;
        use.acts = model.draw_epoch(epoch);
        for (const Act& act : use.acts)
            if (act.origin == use.me) use.buffers.push_back({act, {}, {}});
        play_epoch(use, static_cast<int>(epoch), i % 2);
        check_window(step, use, kNames[static_cast<int>(epoch)]);
    }
    ok(mpi_.Group_free(&use.group), "MPI_Group_free");
    ok(mpi_.Win_free(&use.win), "MPI_Win_free");
}

}  // namespace starling::simulation
