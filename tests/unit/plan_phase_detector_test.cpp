// Phases found without marks, in synthetic traces of collective calls and of the traffic between them.
#include "plan/phase_detector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

namespace starling::plan {
namespace {

/// Returns `count` partners (ranks first, first + 1, ...), each with `messages` messages.
Partners ring_of(uint32_t first, uint32_t count, uint32_t messages = 10) {
    Partners partners;
    for (uint32_t i = 0; i < count; ++i) partners.push_back({1, (first + i) % 64, messages});
    return partners;
}

/// Feeds the phase detector with a program's sends and collective calls, and records the phases that it finds.
class Program {
  public:
    void send(const Partners& partners) {
        for (const Partner& partner : partners) {
            const auto same = [&](const Partner& sent) { return sent.rank == partner.rank; };
            const auto at = std::find_if(sent_.begin(), sent_.end(), same);
            if (at == sent_.end())
                sent_.push_back(partner);
            else
                at->priority += partner.priority;
        }
    }
    void call(uint64_t site, uint64_t communicator = 7) {
        if (!finder_.call(site, communicator)) return;
        ++segments;
        if (const auto begun = finder_.segment(std::exchange(sent_, {}))) {
            now = *begun;
            most = std::max(most, now);
            ++begins;
        }
    }
    uint32_t now = 0, most = 0, begins = 0, segments = 0;

  private:
    PhaseDetector finder_;
    Partners sent_;
};

TEST(PhaseDetector, OneLoopWhosePartnersNeverChangeIsOnePhase) {
    Program program;
    for (int step = 0; step < 100; ++step) {
        program.send(ring_of(3, 4));
        program.call(1);
    }
    EXPECT_EQ(program.begins, 1u);
    EXPECT_EQ(program.now, 1u);
}

TEST(PhaseDetector, AReturningPatternIsTheOldPhaseAndIsExpected) {
    Program program;
    uint32_t during[2][20] = {};  ///< phase believed to run during the first and the last step of a pattern
    for (uint32_t cycle = 0; cycle < 20; ++cycle) {
        for (int step = 0; step < 8; ++step) {
            if (step == 0 || step == 4)
                during[0][cycle] = during[0][cycle] && during[0][cycle] != program.now ? 99 : program.now;
            if (step == 5 || step == 7)
                during[1][cycle] = during[1][cycle] && during[1][cycle] != program.now ? 99 : program.now;
            program.send(step < 5 ? ring_of(0, 4) : ring_of(30, 4));
            program.call(1);
        }
    }
    EXPECT_EQ(program.most, 2u);
    for (uint32_t cycle = 4; cycle < 20; ++cycle)
        for (const auto& pattern : during) EXPECT_EQ(pattern[cycle], pattern[19]) << cycle;
    EXPECT_EQ(during[0][19] + during[1][19], 3u);
}

TEST(PhaseDetector, PhasesThatAlternateInEveryIteration) {
    Program program;
    uint32_t phase_of[3] = {};
    for (uint32_t step = 0; step < 90; ++step) {
        if (step >= 20 && step < 23) phase_of[step % 3] = program.now;
        if (step >= 23) { EXPECT_EQ(program.now, phase_of[step % 3]); }
        program.send(ring_of(20 * (step % 3), 4));
        program.call(1);
    }
    EXPECT_EQ(program.most, 3u);
    EXPECT_EQ(phase_of[0] + phase_of[1] + phase_of[2], 6u);
    EXPECT_EQ(phase_of[0] * phase_of[1] * phase_of[2], 6u);
}

// A time step's collective marks the phases, however often the solver within the step calls another one, and whether its number of
// iterations varies.
TEST(PhaseDetector, NestedLoopsAreCutAtTheOutermost) {
    for (const bool varies : {false, true}) {
        Program program;
        std::mt19937 random(3);
        uint32_t before = 0, found = 0;
        for (int step = 0; step < 60; ++step) {
            if (step == 20) before = program.segments, found = program.most;
            const int iterations = varies ? 5 + static_cast<int>(random() % 40) : 12;
            for (int i = 0; i < iterations; ++i) {
                program.send(ring_of(i % 2 == 0 ? 0 : 2, 4));
                program.call(100);
                program.call(101);
            }
            program.send(ring_of(40, 2));
            program.call(200);
        }
        EXPECT_EQ(program.segments - before, 40u) << varies;
        EXPECT_EQ(program.most, found) << varies;
        EXPECT_EQ(program.now, found) << varies;
    }
}

TEST(PhaseDetector, ThreeNestedLoops) {
    Program program;
    uint32_t before = 0;
    for (int output = 0; output < 20; ++output) {
        if (output == 12) before = program.segments;
        for (int step = 0; step < 6; ++step) {
            for (int i = 0; i < 9; ++i) program.call(1);
            program.call(2);
        }
        program.send(ring_of(0, 3));
        program.call(3);
    }
    EXPECT_EQ(program.segments - before, 8u);
}

// Random calls may look like a loop for a while, but in 3,000 calls they form hardly any phases.
TEST(PhaseDetector, AnIrregularProgramHasHardlyAnyPhases) {
    for (uint32_t seed = 0; seed < 50; ++seed) {
        Program program;
        std::mt19937 random(seed);
        for (int i = 0; i < 3000; ++i) {
            for (int message = 0; message < 12; ++message)
                program.send({{1, static_cast<uint32_t>(random() % 64), 1 + static_cast<uint32_t>(random() % 20)}});
            program.call(random() % 20);
        }
        EXPECT_LE(program.most, 3u) << seed;
        EXPECT_LE(program.begins, 8u) << seed;
    }
}

TEST(PhaseDetector, WithoutCollectiveCallsNoPhaseIsFound) {
    Program program;
    for (int i = 0; i < 100; ++i) program.send(ring_of(0, 4));
    EXPECT_EQ(program.segments, 0u);
}

// The partners move slowly, yet all steps are one phase. It restarts now and then, so that a plan from its last occurrence fits the present
// partners.
TEST(PhaseDetector, AMovingNeighborhoodStaysOnePhase) {
    Program program;
    for (uint32_t step = 0; step < 200; ++step) {
        program.send(ring_of(step / 4, 6));
        program.call(1);
    }
    EXPECT_EQ(program.most, 1u);
    EXPECT_GE(program.begins, 20u);
    EXPECT_LE(program.begins, 60u);
}

TEST(PhaseDetector, AnAbruptChangeStartsANewPhase) {
    Program program;
    for (uint32_t step = 0; step < 40; ++step) {
        program.send(ring_of(step < 20 ? 0 : 32, 6));
        program.call(1);
    }
    EXPECT_EQ(program.most, 2u);
    EXPECT_EQ(program.now, 2u);
}

TEST(PhaseDetector, OneExceptionalIterationIsNoPhase) {
    Program program;
    for (uint32_t step = 0; step < 60; ++step) {
        program.send(ring_of(step % 20 == 13 ? step % 64 + 10 : 0, 6));
        program.call(1);
    }
    EXPECT_EQ(program.begins, 1u);
}

TEST(PhaseDetector, UnknownPatternsBelongToNoPhase) {
    Program program;
    for (uint32_t step = 0; step < 20; ++step) {
        program.send(ring_of(0, 4));
        program.call(1);
    }
    EXPECT_EQ(program.now, 1u);
    for (uint32_t step = 0; step < 8; ++step) {
        program.send(ring_of(8 + 6 * step, 4));
        program.call(1);
    }
    EXPECT_EQ(program.now, 0u);
    program.send(ring_of(0, 4));
    program.call(1);
    EXPECT_EQ(program.now, 1u);
}

TEST(PhaseDetector, ASegmentWithoutMessagesChangesNothing) {
    Program program;
    for (uint32_t step = 0; step < 60; ++step) {
        if (step % 3 == 0) program.send(ring_of(0, 4));
        program.call(1);
    }
    EXPECT_EQ(program.begins, 1u);
}

// Communicators that are created and freed make calls from ever new call sites.
TEST(PhaseDetector, MemoryIsBounded) {
    Program program;
    for (uint32_t step = 0; step < 5000; ++step) {
        program.send(ring_of(step * 17 % 64, 3, 1 + step % 9));
        program.call(1, step);
        program.call(2);
    }
    EXPECT_GT(program.segments, 4000u);
}

TEST(PhaseDetector, OverlapIsWeighted) {
    EXPECT_DOUBLE_EQ(overlap({{1, 1, 500'000}, {1, 2, 500'000}}, {{1, 1, 500'000}, {1, 2, 500'000}}), 1);
    EXPECT_DOUBLE_EQ(overlap({{1, 1, 900'000}, {1, 2, 100'000}}, {{1, 1, 100'000}, {1, 2, 900'000}}), 0.2);
    EXPECT_DOUBLE_EQ(overlap({{1, 1, 1'000'000}}, {{2, 1, 1'000'000}}), 0);
    EXPECT_DOUBLE_EQ(overlap({}, {{2, 1, 1'000'000}}), 0);
}

}  // namespace
}  // namespace starling::plan
