// OpenSHMEM's memory: rounds of accesses of all kinds, then collectives of a team of some ranks. All ranks draw the same rounds.
#include <cinttypes>
#include <cstdio>
#include <deque>

#include "daemon.h"
#include "memory_model.h"
#include "player.h"

namespace starling::simulation {

namespace {

using shmem::Element;
using shmem::Operator;

constexpr Do kDoes[] = {Do::put, Do::strided_put, Do::put_signal, Do::get, Do::add_shared, Do::ticket, Do::swap, Do::locked};

void* team_of_all() { return reinterpret_cast<void*>(shmem::kWorldTeam); }
void* default_context() { return reinterpret_cast<void*>(shmem::kDefaultContext); }

/// The address that a wait reads, and the value for which it waits.
struct Awaited {
    const uint64_t* at;
    uint64_t least;
};

bool is_there(void* argument) {
    const Awaited& awaited = *static_cast<Awaited*>(argument);
    return __atomic_load_n(awaited.at, __ATOMIC_ACQUIRE) >= awaited.least;
}

}  // namespace

struct Player::SymmetricUse {
    MemoryModel& model;
    int me;
    void* context;
    uint64_t* memory = nullptr;
    long* lock = nullptr;
    /// An access of the round, with its buffer.
    struct Buffer {
        Act act;
        std::vector<uint64_t> data, result;
    };
    std::deque<Buffer> buffers;
    std::vector<Act> acts;  ///< accesses of all ranks in the round
    std::string doing;
};

// After a death OpenSHMEM calls may fail, and the program ends the job; mostly the library has already done so.
void Player::good(int code, const char* what) {
    if (code == 0) return;
    if (done().has(Feature::deaths)) daemons()->end_job(process_);
    fail_run("%s failed with %d", what, code);
}

void Player::begin_symmetric() {
    process_.doing = "shmem_init";
    good(mpi_.shmem_init("shmem_init", 0, nullptr), "shmem_init");
    symmetric_ = true;
}

void Player::end_symmetric() {
    if (!symmetric_) return;
    process_.doing = "shmem_finalize";
    mpi_.shmem_finalize("shmem_finalize");
    symmetric_ = false;
}

void Player::act_on_symmetric(SymmetricUse& use) {
    auto& [act, data, result] = use.buffers.back();
    const MemoryModel& model = use.model;
    const size_t bytes = model.words * sizeof(uint64_t);
    const bool nbi = act.id & 4;
    const int to = act.target;
    uint64_t* const area = use.memory + model.area_of(use.me);
    uint64_t* const signal = use.memory + model.signal_word(use.me);
    data.resize(model.words);
    for (uint32_t i = 0; i < model.words; ++i) data[i] = word(act.id, i);
    result.assign(model.words, 0x3333);
    static constexpr const char* kNames[] = {"a put",     "a strided put", "",       "a get",   "a put with signal",
                                             "an update", "a ticket",      "a swap", "the lock"};
    process_.doing = use.doing + ", " + kNames[static_cast<int>(act.what)] + " at " + std::to_string(to);
    const shmem::starling_shmem_strides every_other{16, 8, 8, model.words / 2};
    switch (act.what) {
        case Do::put:
            return mpi_.shmem_put("shmem_put64", use.context, area, data.data(), bytes, to, nbi);
        case Do::strided_put:
            return mpi_.shmem_put_strided("shmem_iput64", use.context, area, data.data(), &every_other, to);
        case Do::put_signal:
            data.push_back(1);
            if (act.id & 8)
                return mpi_.shmem_put_signal("shmem_put64_signal", use.context, area, data.data(), bytes, signal, 1,
                                             Operator::sum, to, nbi);
            mpi_.shmem_put("shmem_put64", use.context, area, data.data(), bytes, to, nbi);
            mpi_.shmem_fence("shmem_fence", use.context);
            return mpi_.shmem_update("shmem_uint64_atomic_inc", use.context, Element::uint64, Operator::sum, signal,
                                     &data.back(), nullptr, to, false);
        case Do::get:
            return mpi_.shmem_get("shmem_get64", use.context, result.data(), area, bytes, to, nbi);
        case Do::add_shared:
            return mpi_.shmem_update("shmem_uint64_atomic_add", use.context, Element::uint64, Operator::sum,
                                     use.memory + model.shared_word(act.id), data.data(), nullptr, to, false);
        case Do::ticket:
            data[0] = 1;
            return mpi_.shmem_update("shmem_uint64_atomic_fetch_add", use.context, Element::uint64, Operator::sum,
                                     use.memory + model.ticket_word(), data.data(), result.data(), to, nbi);
        case Do::swap:
            data[0] = act.id;
            data[1] = act.was;
            return mpi_.shmem_compare_swap("shmem_uint64_atomic_compare_swap", use.context, Element::uint64,
                                           use.memory + model.swap_word(use.me), &data[1], data.data(), result.data(), to, nbi);
        case Do::locked:
            mpi_.shmem_set_lock("shmem_set_lock", use.lock);
            mpi_.shmem_get("shmem_get64", default_context(), data.data(), use.memory + model.locked_word(), 8, to, false);
            ++data[0];
            mpi_.shmem_put("shmem_put64", default_context(), use.memory + model.locked_word(), data.data(), 8, to, false);
            return mpi_.shmem_clear_lock("shmem_clear_lock", use.lock);
        case Do::add_all:
            return;  // this kind of access exists for windows only
    }
}

// Waits for signals: data that was put before a signal has arrived with it.
void Player::wait_for_signals(SymmetricUse& use) {
    const MemoryModel& model = use.model;
    for (const Act& act : use.acts) {
        if (act.what != Do::put_signal || act.target != use.me) continue;
        const size_t signal = model.signal_word(act.origin);
        Awaited awaited{use.memory + signal, model.single(use.me, signal) + 1};
        process_.doing = use.doing + ", the signal of " + std::to_string(act.origin);
        mpi_.shmem_wait("shmem_signal_wait_until", is_there, &awaited);
        const uint64_t* const area = use.memory + model.area_of(act.origin);
        for (uint32_t i = 0; i < model.words; ++i)
            if (area[i] != word(act.id, i))
                fail_run("word %u of PE %d's put is %" PRIx64 " after its signal, should be %" PRIx64, i, act.origin, area[i],
                         word(act.id, i));
    }
}

// A strided team (start, stride, size): all PEs draw the same one, and its members use it.
void Player::use_team(const Step& step, SymmetricUse& use) {
    Random& random = use.model.random;
    const auto n = static_cast<uint64_t>(use.model.n);
    const uint64_t start = random.below(n), stride = random.between(1, 3), most = (n - start - 1) / stride + 1;
    const uint64_t members = random.between(1, most), count = random.below(random.one_in(4) ? 600 : 10);
    const uint64_t root = random.below(members), id = random.next(), what = random.below(6);
    const bool syncs = random.one_in(2);
    auto* const dest = static_cast<uint64_t*>(mpi_.shmem_allocate("shmem_calloc", 16, (n * count + 1) * 8, true));
    auto* const source = static_cast<uint64_t*>(mpi_.shmem_allocate("shmem_calloc", 16, (n * count + 1) * 8, true));
    void* team = nullptr;
    good(mpi_.shmem_team_split("shmem_team_split_strided", team_of_all(), static_cast<int>(start), static_cast<int>(stride),
                               static_cast<int>(members), 0, &team),
         "shmem_team_split_strided");
    const uint64_t me = (static_cast<uint64_t>(use.me) - start) / stride;
    const bool is_in =
        static_cast<uint64_t>(use.me) >= start && (static_cast<uint64_t>(use.me) - start) % stride == 0 && me < members;
    if (is_in != (team != nullptr)) fail_run("step %u: this PE is wrongly in the team or wrongly missing", step.id);
    if (team) {
        const auto mine = static_cast<uint64_t>(mpi_.shmem_team_my_pe("shmem_team_my_pe", team));
        if (mine != me) fail_run("step %u: this PE is PE %" PRIu64 " of the team, should be %" PRIu64, step.id, mine, me);
        for (uint64_t i = 0; i < n * count; ++i) source[i] = word(id + me, i);
        const auto call = [](const char* name) { return shmem::Caller{name, nullptr}; };
        const size_t bytes = count * 8;
        int error = 0;
        uint64_t total = count;
        std::function<uint64_t(uint64_t)> expected;
        const auto sum_of = [id](uint64_t to, uint64_t i) {
            uint64_t sum = 0;
            for (uint64_t pe = 0; pe < to; ++pe) sum += word(id + pe, i);
            return sum;
        };
        switch (what) {
            case 0:
                error =
                    mpi_.shmem_broadcast(call("shmem_broadcastmem"), team, dest, source, bytes, static_cast<int>(root), true);
                expected = [=](uint64_t i) { return word(id + root, i); };
                break;
            case 1:
                error = mpi_.shmem_fcollect(call("shmem_fcollectmem"), team, dest, source, bytes);
                total = members * count;
                expected = [=](uint64_t i) { return word(id + i / count, i % count); };
                break;
            case 2:  // only odd PEs contribute
                error = mpi_.shmem_collect(call("shmem_collectmem"), team, dest, source, me % 2 ? bytes : 0);
                total = members / 2 * count;
                expected = [=](uint64_t i) { return word(id + i / count * 2 + 1, i % count); };
                break;
            case 3:
                error = mpi_.shmem_alltoall(call("shmem_alltoallmem"), team, dest, source, bytes);
                total = members * count;
                expected = [=](uint64_t i) { return word(id + i / count, me * count + i % count); };
                break;
            case 4:
                error = mpi_.shmem_reduce(call("shmem_uint64_sum_reduce"), team, dest, source, count, Element::uint64,
                                          Operator::sum);
                expected = [=](uint64_t i) { return sum_of(members, i); };
                break;
            default:
                error = mpi_.shmem_scan(call("shmem_uint64_sum_inscan"), team, dest, source, count, Element::uint64, false);
                expected = [=](uint64_t i) { return sum_of(me + 1, i); };
        }
        good(error, "a collective of a team");
        for (uint64_t i = 0; i < total; ++i)
            if (dest[i] != expected(i))
                fail_run("step %u: word %" PRIu64 " of collective %" PRIu64 " is %" PRIx64 ", should be %" PRIx64, step.id, i,
                         what, dest[i], expected(i));
        if (syncs) good(mpi_.shmem_sync(call("shmem_team_sync"), team, false), "shmem_team_sync");
        mpi_.shmem_team_destroy("shmem_team_destroy", team);
    }
    mpi_.shmem_free("shmem_free", source);
    mpi_.shmem_free("shmem_free", dest);
}

void Player::use_symmetric(const Step& step) {
    const std::string doing = process_.doing;
    if (!symmetric_) begin_symmetric();
    const shmem::Caller barrier{"shmem_barrier_all", nullptr};
    MemoryModel model(script_.seed, step, static_cast<int>(script_.ranks), static_cast<int>(me_));
    if (mpi_.shmem_my_pe("shmem_my_pe") != static_cast<int>(me_) || mpi_.shmem_n_pes("shmem_n_pes") != model.n)
        fail_run("this process is not PE %u of %d", me_, model.n);
    SymmetricUse use{
        .model = model, .me = static_cast<int>(me_), .context = default_context(), .buffers = {}, .acts = {}, .doing = doing};
    use.memory = static_cast<uint64_t*>(mpi_.shmem_allocate("shmem_calloc", 16, model.size() * 8, true));
    use.lock = static_cast<long*>(mpi_.shmem_allocate("shmem_calloc", 16, sizeof(long), true));
    if (!use.memory || !use.lock) fail_run("step %u: no symmetric memory was allocated", step.id);
    for (uint32_t i = 0; i < step.count; ++i) {
        void* context = nullptr;
        if (model.random.one_in(3) && mpi_.shmem_context_create("shmem_ctx_create", team_of_all(), 0, &context))
            fail_run("step %u: no context was created", step.id);
        use.context = context ? context : default_context();
        use.acts = model.draw(kDoes);
        for (const Act& act : use.acts) {
            if (act.origin != use.me) continue;
            use.buffers.push_back({act, {}, {}});
            act_on_symmetric(use);
        }
        wait_for_signals(use);
        done().add(Feature::symmetric);
        process_.doing = use.doing + ", a round's end";
        if (context) mpi_.shmem_context_destroy("shmem_ctx_destroy", context);
        mpi_.shmem_quiet("shmem_quiet", default_context());
        char what[40];
        std::snprintf(what, sizeof what, "round %u of step %u", i, step.id);
        for (const auto& [act, data, result] : use.buffers) check_result(model, act, result, false, what);
        good(mpi_.shmem_sync(barrier, team_of_all(), true), "shmem_barrier_all");
        for (const Act& act : use.acts) model.apply(act);
        for (const auto& [act, data, result] : use.buffers) check_result(model, act, result, true, what);
        check_memory(model, use.memory, what);
        use.buffers.clear();
        good(mpi_.shmem_sync(barrier, team_of_all(), false), "shmem_sync_all");
        process_.doing = use.doing + ", a team";
        if (model.random.one_in(2)) use_team(step, use);
    }
    mpi_.shmem_free("shmem_free", use.lock);
    mpi_.shmem_free("shmem_free", use.memory);
}

}  // namespace starling::simulation
