// A model of the update lock in every order of steps, then the real lock with processes that died. Single updates by one instruction never
// overlap with bulk updates under the guard, whichever process dies at any step, and no process waits forever.
#include "rma/update_lock.h"

#include <gtest/gtest.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/barrier.h"
#include "exploration.h"
#include "steps.h"

namespace starling::rma {
namespace {

using test::Operation;

constexpr int kProcesses = 3;
constexpr uint64_t kFirstPid = 100;
/// The words that the processes share.
enum Place : uint64_t { kHolder, kMode, kMarks, kPlaces = kMarks + kProcesses };

/// A plain store that is still in its core's store buffer, invisible to other processes.
struct Waiting {
    uint64_t place, value;
};

/// Each process takes a few steps: it updates one element by an atomic instruction, updates many under the guard, or starts the quick mode
/// (rma/update_lock.h). Plain stores stay in their core's store buffer, in order, and become visible at any later time; later loads may
/// overtake them.
struct World {
    uint64_t memory[kPlaces] = {};
    std::vector<Waiting> stores[kProcesses];
    Operation operations[kProcesses];
    enum Doing : uint8_t { nothing, one, all, begin, dead } doing[kProcesses] = {};
    int left[kProcesses] = {2, 1, 1};
    /// Whether the process is accessing the memory: by an instruction; under the guard.
    bool by_processor[kProcesses] = {}, alone[kProcesses] = {};
    std::string trace;

    std::string key() const {
        test::Key key;
        for (const uint64_t word : memory) key.put(word);
        for (int p = 0; p < kProcesses; ++p) {
            key.put(stores[p].size());
            for (const Waiting& store : stores[p]) key.put(store.place << 32 | store.value);
            key.put(operations[p]);
            key.put(static_cast<uint64_t>(doing[p]) << 8 | static_cast<uint64_t>(left[p]) << 2 |
                    static_cast<uint64_t>(by_processor[p]) << 1 | static_cast<uint64_t>(alone[p]));
        }
        return key.text;
    }
    void show_first(int p) {
        const Waiting store = stores[p].front();
        stores[p].erase(stores[p].begin());
        memory[store.place] = store.value;
        // The guard's release becomes visible only after all stores made under the guard, because the store buffer keeps their order.
        if (store.place == kHolder) alone[p] = false;
    }
    void show_all(int p) {
        while (!stores[p].empty()) show_first(p);
    }
    uint64_t seen_by(int p, uint64_t place) const {
        for (auto store = stores[p].rbegin(); store != stores[p].rend(); ++store)
            if (store->place == place) return store->value;
        return memory[place];
    }
    bool is_alive(uint64_t holder) const { return doing[holder - kFirstPid] != dead; }
};

/// A shared word as process `p` sees it: std::atomic on a processor with a store buffer.
struct Shared1 {
    World& world;
    int p;
    uint64_t place;

    uint64_t load(std::memory_order = {}) {
        return test::running->access([&] { return world.seen_by(p, place); });
    }
    void store(uint64_t to, std::memory_order order) {
        test::running->access([&] {
            world.stores[p].push_back({place, to});
            if (order == std::memory_order_seq_cst) world.show_all(p);
            return to;
        });
    }
};
struct ModeOf : Shared1 {
    UpdateLockMode load(std::memory_order = {}) { return static_cast<UpdateLockMode>(Shared1::load()); }
    void store(UpdateLockMode to, std::memory_order order) { Shared1::store(static_cast<uint64_t>(to), order); }
};

/// Shared words of a process that waits for the guard. A load that would not end the wait is no step, because it changes nothing. A dead
/// holder's guard may be taken.
struct PatientHolder : Shared1 {
    uint64_t load(std::memory_order = {}) { return 0; }
    bool compare_exchange_strong(uint64_t&, uint64_t to, std::memory_order) {
        test::running->access([&] {
            const uint64_t found = world.seen_by(p, place);
            if (found != 0 && world.is_alive(found)) throw test::Stop{};
            world.show_all(p);
            return world.memory[place] = to;
        });
        return true;
    }
};
struct PatientMark : Shared1 {
    int whose;
    uint64_t load(std::memory_order) {
        return test::running->access([&] {
            const uint64_t found = world.seen_by(p, place);
            if (found != 0 && world.doing[whose] != World::dead) throw test::Stop{};
            return found;
        });
    }
};

class Updates : public test::Exploration<World> {
  private:
    static Shared1 mark(World& w, int p, int whose) { return {w, p, kMarks + static_cast<uint64_t>(whose)}; }

    /// An access to the memory takes one step, so that other processes may run during it.
    static void stay(bool& there) {
        there = true;
        test::running->access([] { return uint64_t{0}; });
    }
    /// Updates the memory by one atomic instruction, which is also a memory barrier.
    static void change_by_processor(World& w, int p) {
        w.by_processor[p] = true;
        test::running->access([&] {
            w.show_all(p);
            return uint64_t{0};
        });
        w.by_processor[p] = false;
    }

    /// The barrier takes effect at once for its caller, and at some later moment for every other process.
    static void barrier_everywhere(World& w, int caller) {
        const auto pass = [&](int p) {
            test::running->access([&] {
                w.show_all(p);
                return uint64_t{0};
            });
        };
        pass(caller);
        for (int p = 0; p < kProcesses; ++p)
            if (p != caller) pass(p);
    }

    static void take_guard(World& w, int p) {
        PatientHolder holder{{w, p, kHolder}};
        EXPECT_TRUE(try_guard(holder, kFirstPid + static_cast<uint64_t>(p)));
        ModeOf mode{{w, p, kMode}};
        end_quick(mode, [&w, p] { barrier_everywhere(w, p); });
    }

    static void be_alone(World& w, int p) {
        take_guard(w, p);
        for (int other = 0; other < kProcesses; ++other) {
            PatientMark theirs{mark(w, p, other), other};
            Shared1 to_clear = mark(w, p, other);
            if (is_marked(theirs, 0)) clear_mark(to_clear);
        }
        stay(w.alone[p]);
        Shared1{w, p, kHolder}.store(0, std::memory_order_release);
    }

    static void change_one(World& w, int p) {
        Shared1 mine = mark(w, p, p), holder{w, p, kHolder};
        ModeOf mode{{w, p, kMode}};
        if (!set_mark_quickly(mine, mode, 0) && !set_mark(mine, holder, 0)) return be_alone(w, p);
        change_by_processor(w, p);
        clear_mark(mine);
    }

    static void begin_quick(World& w, int p) {
        take_guard(w, p);
        ModeOf{{w, p, kMode}}.store(UpdateLockMode::quick, std::memory_order_release);
        Shared1{w, p, kHolder}.store(0, std::memory_order_release);
    }

    void expand(const World& world) override {
        bool any_waits = false, any_goes_on = false;
        for (int p = 0; p < kProcesses; ++p) {
            if (!world.stores[p].empty()) show(world, p), any_goes_on = true;
            if (world.doing[p] == World::dead) continue;
            if (world.doing[p] == World::nothing) {
                if (world.left[p] == 0) continue;
                for (const World::Doing what : {World::one, World::all, World::begin}) step(world, p, what);
            } else {
                (step(world, p, world.doing[p]) ? any_goes_on : any_waits) = true;
            }
            die(world, p);
        }
        if (any_waits && !any_goes_on) fail(world, "all processes wait, so this is a deadlock");
    }

    void show(World next, int p) {
        next.show_first(p);
        next.trace += " " + std::to_string(p) + ".";
        push(std::move(next));
    }

    static void act(World& w, int p, World::Doing what) {
        if (what == World::one) return change_one(w, p);
        return what == World::all ? be_alone(w, p) : begin_quick(w, p);
    }

    /// Runs one step of the operation `what`. Returns whether the step was possible or the operation ended.
    bool step(World next, int p, World::Doing what) {
        static constexpr char kNames[] = " +*q";
        if (next.doing[p] == World::nothing) --next.left[p];
        next.doing[p] = what;
        next.trace += " " + std::to_string(p) + kNames[what];
        const size_t had = next.operations[p].seen.size();
        const bool over = test::step(next.operations[p], [&] { act(next, p, what); });
        if (over) next.doing[p] = World::nothing;
        for (int q = 0; q < kProcesses; ++q)
            for (int r = 0; r < kProcesses; ++r) {
                if (next.alone[q] && q != r && next.alone[r]) return fail(next, "two bulk updates overlap"), true;
                if (next.alone[q] && q != r && next.by_processor[r])
                    return fail(next, "a single update overlaps with a bulk update"), true;
            }
        const bool stepped = over || next.operations[p].seen.size() > had;
        push(std::move(next));
        return stepped;
    }

    /// When a process dies, all its stores become visible: none is left in its core's store buffer.
    void die(World next, int p) {
        next.show_all(p);
        next.doing[p] = World::dead;
        next.by_processor[p] = next.alone[p] = false;
        next.operations[p] = {};
        next.trace += " " + std::to_string(p) + "!";
        push(std::move(next));
    }
};

TEST(UpdateLockModel, BulkUpdatesNeverOverlapWithOthers) {
    Updates updates;
    test::explore(updates);
}

/// Memory shared with a child process.
struct Shared {
    Guard guard{};
    UpdateMark marks[2] = {};
    UpdateLock at(uint32_t place) { return {guard, marks, 2, place, 0}; }
};

/// Creates an object that a child process shares; it is unmapped with the pointer.
template <class T>
auto make_shared_with_child() {
    const auto unmap = [](T* gone) { munmap(gone, sizeof(T)); };
    void* memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return std::unique_ptr<T, decltype(unmap)>(new (memory) T, unmap);
}

/// Runs `act` in a child that then dies.
void in_child(const std::function<void()>& act) {
    const pid_t child = fork();
    if (child == 0) {
        act();
        _exit(0);
    }
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
}

TEST(UpdateLock, TheGuardIsTakenFromADeadProcess) {
    const auto shared = make_shared_with_child<Shared>();
    in_child([&] { shared->at(1).begin_all(); });
    EXPECT_NE(shared->guard.holder.load(), 0u);
    const UpdateLock mine = shared->at(0);
    EXPECT_FALSE(mine.begin_one()) << "the dead process may have been changing the memory";
    EXPECT_EQ(shared->marks[0].target.load(), 0u);
    mine.begin_all();
    EXPECT_EQ(shared->guard.holder.load(), static_cast<uint32_t>(getpid()));
    mine.end_all();
    EXPECT_TRUE(mine.begin_one());
    mine.end_one();
}

TEST(UpdateLock, TheMarkOfADeadProcessBlocksNoOther) {
    const auto shared = make_shared_with_child<Shared>();
    in_child([&] { shared->at(1).begin_one(); });
    EXPECT_EQ(shared->marks[1].target.load(), 1u);
    const UpdateLock mine = shared->at(0);
    EXPECT_TRUE(mine.begin_one());
    mine.end_one();
    mine.begin_all();
    EXPECT_EQ(shared->marks[1].target.load(), 0u);
    mine.end_all();
}

/// Enough single updates to switch the lock to its quick mode.
void be_patient(const UpdateLock& exclusion) {
    for (uint32_t i = 0; i < UpdateLock::kPatience; ++i) {
        ASSERT_TRUE(exclusion.begin_one());
        exclusion.end_one();
    }
}

#define NEEDS_BARRIERS() \
    if (!can_have_barriers()) GTEST_SKIP() << "this kernel has no barriers for other processes"

TEST(UpdateLock, ManySingleUpdatesStartTheQuickModeAndABulkUpdateEndsIt) {
    NEEDS_BARRIERS();
    register_for_barriers();
    const auto shared = make_shared_with_child<Shared>();
    const UpdateLock mine = shared->at(0), other = shared->at(1);
    be_patient(mine);
    EXPECT_EQ(shared->guard.mode.load(), UpdateLockMode::quick);
    EXPECT_EQ(shared->guard.holder.load(), 0u);
    EXPECT_TRUE(mine.begin_one());
    EXPECT_EQ(shared->marks[0].target.load(), 1u);
    mine.end_one();
    EXPECT_TRUE(mine.begin_one_quickly());
    mine.end_one();
    other.begin_all();
    EXPECT_EQ(shared->guard.mode.load(), UpdateLockMode::careful);
    EXPECT_FALSE(mine.begin_one());
    EXPECT_FALSE(mine.begin_one_quickly());
    EXPECT_EQ(shared->marks[0].target.load(), 0u);
    other.end_all();
    EXPECT_FALSE(mine.begin_one_quickly()) << "one of many elements, whose update under the guard costs no more";
    EXPECT_TRUE(mine.begin_one());
    mine.end_one();
    be_patient(mine);
    EXPECT_EQ(shared->guard.mode.load(), UpdateLockMode::quick);
}

TEST(UpdateLock, AProcessWithBothKindsOfUpdatesStartsTheQuickModeAndStaysInIt) {
    NEEDS_BARRIERS();
    register_for_barriers();
    const auto shared = make_shared_with_child<Shared>();
    const UpdateLock mine = shared->at(0);
    shared->at(1);
    for (uint32_t i = 1; i < UpdateLock::kPatience; ++i) EXPECT_FALSE(mine.begin_one_quickly());
    EXPECT_EQ(shared->guard.mode.load(), UpdateLockMode::careful);
    EXPECT_TRUE(mine.begin_one_quickly()) << "otherwise it would end at once the quick mode that it has started";
    EXPECT_EQ(shared->guard.mode.load(), UpdateLockMode::quick);
    mine.end_one();
}

TEST(UpdateLock, NoQuickModeIfAProcessCannotEndIt) {
    register_for_barriers();
    const auto shared = make_shared_with_child<Shared>();
    const UpdateLock mine = shared->at(0);
    be_patient(mine);
    EXPECT_EQ(shared->guard.mode.load(), UpdateLockMode::careful);
}

TEST(UpdateLock, AProcessThatDiesWhileEndingTheQuickModeLeavesThatToTheNext) {
    NEEDS_BARRIERS();
    register_for_barriers();
    const auto shared = make_shared_with_child<Shared>();
    const UpdateLock mine = shared->at(0);
    shared->at(1);
    be_patient(mine);
    in_child([&] {
        shared->guard.lock(static_cast<uint32_t>(getpid()));
        shared->guard.mode.store(UpdateLockMode::ending);
    });
    EXPECT_FALSE(mine.begin_one());
    mine.begin_all();
    EXPECT_EQ(shared->guard.mode.load(), UpdateLockMode::careful);
    mine.end_all();
}

/// A number that one process changes by instructions and another by plain loads and stores under the guard. The bursts are long enough for
/// the mode to switch to and fro.
struct Contended : Shared {
    std::atomic<uint64_t> ready{0};
    alignas(64) uint64_t number = 0;
};

TEST(UpdateLock, SingleAndBulkUpdatesOfTwoProcessesLoseNothing) {
    constexpr uint64_t kSingles = 40 * UpdateLock::kPatience, kBulks = 4000;
    const auto shared = make_shared_with_child<Contended>();
    register_for_barriers();
    const UpdateLock mine = shared->at(0);
    const pid_t child = fork();
    if (child == 0) {
        // A child does not inherit the registration for membarrier from its parent.
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
        const UpdateLock its = shared->at(1);
        shared->ready = 1;
        uint64_t quick = 0;
        for (uint64_t i = 0; i < kSingles; ++i) {
            quick += shared->guard.mode.load(std::memory_order_relaxed) == UpdateLockMode::quick;
            if (!its.begin_one()) {
                its.begin_all();
                ++shared->number;
                its.end_all();
                continue;
            }
            __atomic_fetch_add(&shared->number, 1, __ATOMIC_RELAXED);
            its.end_one();
        }
        shared->ready = 2 + (quick > 0);
        _exit(0);
    }
    while (shared->ready == 0) usleep(10);
    uint64_t bulks = 0;
    for (; bulks < kBulks || shared->ready == 1; ++bulks) {
        mine.begin_all();
        const uint64_t now = __atomic_load_n(&shared->number, __ATOMIC_RELAXED);
        for (int i = 0; i < 20; ++i) __builtin_ia32_pause();
        __atomic_store_n(&shared->number, now + 1, __ATOMIC_RELAXED);
        mine.end_all();
        if (bulks % 8 == 0) usleep(100);
    }
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    EXPECT_EQ(shared->number, kSingles + bulks);
    if (can_have_barriers()) { EXPECT_EQ(shared->ready, 3u) << "the quick mode was never used"; }
}

TEST(UpdateLock, MarksOfOtherTargetsDoNotInterfere) {
    Shared shared;
    shared.marks[1].target = 2;
    const UpdateLock mine = shared.at(0);
    mine.begin_all();
    EXPECT_EQ(shared.marks[1].target.load(), 2u);
    mine.end_all();
}

}  // namespace
}  // namespace starling::rma
