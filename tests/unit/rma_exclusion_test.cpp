// What keeps updates apart, in every order of steps: those by one instruction never meet those under the guard, whoever dies at any
// step, and nobody waits forever. Then the real one with processes that have died.
#include "rma/exclusion.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <new>
#include <string>

#include "exploration.h"
#include "steps.h"

namespace starling::rma {
namespace {

using test::Operation;
using test::Word;

constexpr int kProcesses = 3;
constexpr uint64_t kFirstPid = 100;

/// Each process changes the memory a few times, by an instruction or under the guard, as it likes.
struct World {
    Word holder, marks[kProcesses];
    Operation operations[kProcesses];
    enum Doing : uint8_t { nothing, one, all, dead } doing[kProcesses] = {};
    int left[kProcesses] = {2, 2, 2};
    bool by_processor[kProcesses] = {}, alone[kProcesses] = {};  ///< is at the memory now
    std::string trace;

    std::string key() const {
        test::Key key;
        key.put(holder.value);
        for (int p = 0; p < kProcesses; ++p) {
            key.put(marks[p].value);
            key.put(operations[p]);
            key.put(static_cast<uint64_t>(doing[p]) << 8 | static_cast<uint64_t>(left[p]) << 2 |
                    static_cast<uint64_t>(by_processor[p]) << 1 | static_cast<uint64_t>(alone[p]));
        }
        return key.text;
    }
};

/// Shared words for one who waits: what would be looked at in vain is not a step, as nothing comes of it. Those of the dead are there
/// for the taking.
struct PatientHolder {
    World& world;
    uint64_t load(std::memory_order = {}) { return 0; }
    bool compare_exchange_strong(uint64_t&, uint64_t to, std::memory_order) {
        test::running->access([&] {
            const uint64_t found = world.holder.value;
            if (found != 0 && world.doing[found - kFirstPid] != World::dead) throw test::Stop{};
            return world.holder.value = to;
        });
        return true;
    }
};
struct PatientMark {
    World& world;
    int whose;
    uint64_t load(std::memory_order) {
        return test::running->access([&] {
            const uint64_t found = world.marks[whose].value;
            if (found != 0 && world.doing[whose] != World::dead) throw test::Stop{};
            return found;
        });
    }
};

class Updates : public test::Exploration<World> {
  private:
    /// Being at the memory takes a step in which others may come.
    static void stay(bool& there) {
        there = true;
        test::running->access([] { return uint64_t{0}; });
        there = false;
    }

    static void be_alone(World& w, int p) {
        PatientHolder holder{w};
        EXPECT_TRUE(try_guard(holder, kFirstPid + static_cast<uint64_t>(p)));
        for (int other = 0; other < kProcesses; ++other) {
            PatientMark mark{w, other};
            if (is_marked(mark, 0)) clear_mark(w.marks[other]);
        }
        stay(w.alone[p]);
        w.holder.store(0);
    }

    static void change_one(World& w, int p) {
        if (!set_mark(w.marks[p], w.holder, 0)) return be_alone(w, p);
        stay(w.by_processor[p]);
        clear_mark(w.marks[p]);
    }

    void expand(const World& world) override {
        bool any_waits = false, any_goes_on = false;
        for (int p = 0; p < kProcesses; ++p) {
            if (world.doing[p] == World::dead) continue;
            if (world.doing[p] == World::nothing) {
                if (world.left[p] == 0) continue;
                for (const World::Doing what : {World::one, World::all}) step(world, p, what);
            } else {
                (step(world, p, world.doing[p]) ? any_goes_on : any_waits) = true;
            }
            die(world, p);
        }
        if (any_waits && !any_goes_on) fail(world, "all wait");
    }

    /// Whether it was one.
    bool step(World next, int p, World::Doing what) {
        if (next.doing[p] == World::nothing) --next.left[p];
        next.doing[p] = what;
        next.trace += " " + std::to_string(p) + (what == World::one ? "+" : "*");
        const size_t had = next.operations[p].seen.size();
        const bool over = test::step(next.operations[p], [&] { what == World::one ? change_one(next, p) : be_alone(next, p); });
        if (over) next.doing[p] = World::nothing;
        for (int q = 0; q < kProcesses; ++q)
            for (int r = 0; r < kProcesses; ++r) {
                if (next.alone[q] && q != r && next.alone[r]) return fail(next, "two are alone at the memory"), true;
                if (next.alone[q] && next.by_processor[r])
                    return fail(next, "a word is changed beneath one who is alone"), true;
            }
        const bool stepped = over || next.operations[p].seen.size() > had;
        push(std::move(next));
        return stepped;
    }

    void die(World next, int p) {
        next.doing[p] = World::dead;
        next.by_processor[p] = next.alone[p] = false;
        next.operations[p] = {};
        next.trace += " " + std::to_string(p) + "!";
        push(std::move(next));
    }
};

TEST(ExclusionModel, NobodyMeetsOneWhoIsAlone) {
    Updates updates;
    test::explore(updates);
}

/// Memory that a child shares.
struct Shared {
    Guard guard{};
    Mark marks[2] = {};
    Exclusion at(uint32_t place) { return {guard, marks, 2, place, 0}; }
};

Shared* shared_memory() {
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : new (memory) Shared;
}

/// Has a child do so, and then be gone.
void in_child(const std::function<void()>& act) {
    const pid_t child = fork();
    if (child == 0) {
        act();
        _exit(0);
    }
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
}

TEST(Exclusion, TheGuardIsTakenFromOneThatHasDied) {
    Shared* shared = shared_memory();
    ASSERT_NE(shared, nullptr);
    in_child([shared] { shared->at(1).begin_all(); });
    EXPECT_NE(shared->guard.holder.load(), 0u);
    const Exclusion mine = shared->at(0);
    EXPECT_FALSE(mine.begin_one()) << "the dead one may have been at the memory";
    EXPECT_EQ(shared->marks[0].target.load(), 0u);
    mine.begin_all();
    EXPECT_EQ(shared->guard.holder.load(), static_cast<uint32_t>(getpid()));
    mine.end_all();
    EXPECT_TRUE(mine.begin_one());
    mine.end_one();
    munmap(shared, sizeof(Shared));
}

TEST(Exclusion, TheMarkOfOneThatHasDiedKeepsNobodyOut) {
    Shared* shared = shared_memory();
    ASSERT_NE(shared, nullptr);
    in_child([shared] { shared->at(1).begin_one(); });
    EXPECT_EQ(shared->marks[1].target.load(), 1u);
    const Exclusion mine = shared->at(0);
    EXPECT_TRUE(mine.begin_one());
    mine.end_one();
    mine.begin_all();
    EXPECT_EQ(shared->marks[1].target.load(), 0u);
    mine.end_all();
    munmap(shared, sizeof(Shared));
}

TEST(Exclusion, MarksOfOtherTargetsAreInNobodysWay) {
    Shared shared;
    shared.marks[1].target = 2;
    const Exclusion mine = shared.at(0);
    mine.begin_all();
    EXPECT_EQ(shared.marks[1].target.load(), 2u);
    mine.end_all();
}

}  // namespace
}  // namespace starling::rma
