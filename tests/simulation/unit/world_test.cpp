// Tests the simulated world itself: it must report a lost wake-up only if there was one, and the threads of a process must have what real
// ones have.
#include "../world.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <cerrno>
#include <ctime>

namespace starling::simulation {
namespace {

constexpr uint64_t kSleepNs = 100'000'000;
uint32_t word;

/// A process sleeps on the word as long as the library does. Another process computes for some time, and then wakes it or not.
struct Slept {
    bool woken, held_against_it;
};

Slept sleep_beside(uint64_t seed, uint64_t other_after, bool rings) {
    World world(seed);
    Slept out{};
    world.add(0, 0, [&](Process& me) {
        me.futex = &word;
        out.woken = world.sleep_until(world.now + kSleepNs);
        out.held_against_it = me.lapsed == world.switches();
    });
    world.add(0, 1, [&](Process&) {
        world.compute(other_after);
        if (rings) world.wake_futex(&word);
    });
    EXPECT_EQ(world.run(), "");
    return out;
}

TEST(World, ALongSleepThatNoRingEndedIsReported) {
    const Slept slept = sleep_beside(1, kSleepNs / 2, false);
    EXPECT_FALSE(slept.woken);
    EXPECT_TRUE(slept.held_against_it);
}

TEST(World, ASleepThatARingEndedIsNotReported) {
    const Slept slept = sleep_beside(1, kSleepNs - 1000, true);
    EXPECT_TRUE(slept.woken);
    EXPECT_FALSE(slept.held_against_it);
}

// The sleeper and the process that rings it may continue at the same instant, in random order. A ring before the sleeper's turn must count.
TEST(World, ARingBetweenTheEndOfASleepAndItsTurnCounts) {
    int first = 0, second = 0;
    for (uint64_t seed = 1; seed <= 64; ++seed) {
        const Slept slept = sleep_beside(seed, kSleepNs, true);
        EXPECT_FALSE(slept.woken);
        ++(slept.held_against_it ? second : first);
    }
    EXPECT_GT(first, 0) << "a ring before the sleeper's turn was not seen";
    EXPECT_GT(second, 0) << "no process came second";
}

TEST(World, AWakeForOtherBitsDoesNotReachASleeper) {
    World world(1);
    bool woken = true;
    int reached = -1, reached_by_its_bit = -1;
    world.add(0, 0, [&](Process& me) {
        me.futex = &word;
        me.futex_bits = 2;
        woken = world.sleep_until(world.now + 2 * kSleepNs);
    });
    world.add(0, 1, [&](Process&) {
        world.compute(kSleepNs);
        reached = world.wake_futex(&word, 1);
        reached_by_its_bit = world.wake_futex(&word, 3);
    });
    EXPECT_EQ(world.run(), "");
    EXPECT_EQ(reached, 0);
    EXPECT_EQ(reached_by_its_bit, 1);
    EXPECT_TRUE(woken);
}

#ifndef __SANITIZE_THREAD__  // kHasThreads

thread_local int own_number = 7;

/// Runs `thread` beside a process, which joins it, with a turn for each after every step.
void run_with_thread(void* (*thread)(void*), void* argument, const std::function<void()>& process) {
    World world(1);
    world.add(0, 0, [&](Process&) {
        pthread_t made;
        EXPECT_EQ(pthread_create(&made, nullptr, thread, argument), 0);
        process();
        EXPECT_EQ(pthread_join(made, nullptr), 0);
    });
    EXPECT_EQ(world.run(), "");
}

TEST(Threads, EachHasItsThreadLocalVariables) {
    own_number = 1;
    int seen[2] = {};
    const auto thread = [](void* out) -> void* {
        static_cast<int*>(out)[0] = own_number;
        own_number = 2;
        for (int turn = 0; turn < 20; ++turn) world()->yield();
        static_cast<int*>(out)[1] = own_number;
        return nullptr;
    };
    run_with_thread(thread, seen, [] {
        own_number = 3;
        for (int turn = 0; turn < 20; ++turn) world()->yield();
        EXPECT_EQ(own_number, 3);
    });
    EXPECT_EQ(seen[0], 7) << "a new thread's variables have their initial values";
    EXPECT_EQ(seen[1], 2);
}

struct Shared {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    bool inside = false;
    int overlaps = 0;

    void enter_often() {
        for (int round = 0; round < 50; ++round) {
            pthread_mutex_lock(&mutex);
            overlaps += inside;
            inside = true;
            world()->yield();
            inside = false;
            pthread_mutex_unlock(&mutex);
            world()->yield();
        }
    }
};

TEST(Threads, AMutexExcludesAThreadThatHasATurn) {
    Shared shared;
    const auto thread = [](void* of) -> void* {
        static_cast<Shared*>(of)->enter_often();
        return nullptr;
    };
    run_with_thread(thread, &shared, [&] { shared.enter_often(); });
    EXPECT_EQ(shared.overlaps, 0);
}

struct Handed {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
    int value = 0;
};

TEST(Threads, AConditionVariableWakesAThread) {
    Handed handed;
    const auto thread = [](void* of) -> void* {
        auto* const mine = static_cast<Handed*>(of);
        pthread_mutex_lock(&mine->mutex);
        while (mine->value == 0) pthread_cond_wait(&mine->changed, &mine->mutex);
        mine->value *= 2;
        pthread_mutex_unlock(&mine->mutex);
        return nullptr;
    };
    run_with_thread(thread, &handed, [&] {
        world()->compute(kSleepNs);
        pthread_mutex_lock(&handed.mutex);
        handed.value = 21;
        pthread_cond_signal(&handed.changed);
        pthread_mutex_unlock(&handed.mutex);
    });
    EXPECT_EQ(handed.value, 42);
}

TEST(Threads, AWaitForAConditionEndsAtItsTime) {
    Handed handed;
    const auto thread = [](void* of) -> void* {
        auto* const mine = static_cast<Handed*>(of);
        const uint64_t until = world()->now + kSleepNs;
        const timespec time{static_cast<time_t>(until / 1'000'000'000), static_cast<long>(until % 1'000'000'000)};
        pthread_mutex_lock(&mine->mutex);
        EXPECT_EQ(pthread_cond_timedwait(&mine->changed, &mine->mutex, &time), ETIMEDOUT);
        pthread_mutex_unlock(&mine->mutex);
        mine->value = static_cast<int>(world()->now >= until);
        return nullptr;
    };
    run_with_thread(thread, &handed, [] {});
    EXPECT_EQ(handed.value, 1);
}

TEST(Threads, TheDeathOfAProcessEndsItsThreads) {
    World world(1);
    Process& process = world.add(0, 0, [&](Process&) {
        pthread_t made;
        const auto wait = [](void*) -> void* {
            simulation::world()->current()->futex = &word;
            simulation::world()->sleep_until(UINT64_MAX);
            return nullptr;
        };
        pthread_create(&made, nullptr, wait, nullptr);
        world.sleep_until(UINT64_MAX);
    });
    world.at(world.now + kSleepNs, [&] { world.kill(process); });
    EXPECT_EQ(world.run(), "");
    ASSERT_EQ(process.threads.size(), 1u);
    EXPECT_TRUE(process.threads[0]->gone());
}

#endif

}  // namespace
}  // namespace starling::simulation
