// Slots for agreements in shared memory: claimed, left and used again, in all interleavings of the steps, with deaths between any two.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "collective/survivors/agreement_slot.h"
#include "collective/survivors/memory_consensus.h"
#include "exploration.h"

namespace starling::collective {
namespace {

constexpr int kMost = 3, kSlots = 2;

/// The next step of a process in its current communicator. It takes `look` to `leave` for slot 0, then for slot 1.
enum class Step : uint8_t { look, claim, vote, wait, find_ours, leave, count, begin_release, clear, end_release, finished };

struct Process {
    Step step = Step::look;
    uint8_t slot = 0;       ///< the slot of the next step
    uint8_t mine = kSlots;  ///< the slot that this process votes in; kSlots: none
    uint8_t comm = 0;       ///< index of its communicator in its plan
    bool dead = false, knows_of_death = false, by_messages = false;
    /// How the agreement of each communicator has ended: 0 not yet, 1 in memory, 2 by messages.
    std::array<uint8_t, 2> outcomes{};
};

struct Slot {
    uint64_t context = 0, state = 0, left = 0;
    uint32_t arrived = 0;
};

struct World {
    std::array<Process, kMost> processes{};
    std::array<Slot, kSlots> slots{};
    std::string trace;

    std::string key() const {
        std::string text;
        for (const Process& p : processes)
            for (const int value : {int{static_cast<uint8_t>(p.step)}, int{p.slot}, int{p.mine}, int{p.comm}, int{p.dead},
                                    int{p.knows_of_death}, int{p.by_messages}, int{p.outcomes[0]}, int{p.outcomes[1]}})
                text += static_cast<char>('0' + value);
        for (const Slot& s : slots)
            for (const uint64_t value : {s.context, s.state, s.left, uint64_t{s.arrived}}) text += " " + std::to_string(value);
        return text;
    }
};

/// The communicators that a process uses, one after the other: the members of each. Each has one agreement.
struct Plan {
    std::vector<std::vector<int>> communicators;
    int deaths;
};

class Slots : public test::Exploration<World> {
  public:
    explicit Slots(Plan plan) : plan_(std::move(plan)) {
        for (int p = 0; p < kMost; ++p)
            for (size_t c = 0; c < plan_.communicators.size(); ++c)
                if (position(c, p) >= 0) comms_of_[static_cast<size_t>(p)].push_back(c);
    }
    size_t different_slots = 0,
           reused = 0;  ///< states in which members had claimed different slots, and claims of a slot used before

  private:
    int position(size_t comm, int process) const {
        const std::vector<int>& members = plan_.communicators[comm];
        const auto found = std::find(members.begin(), members.end(), process);
        return found == members.end() ? -1 : static_cast<int>(found - members.begin());
    }
    static uint64_t context_of(size_t comm) { return (comm + 1) << 4 | 1; }

    void expand(const World& world) override {
        bool any = false;
        int dead = 0;
        for (const Process& p : world.processes) dead += p.dead;
        for (int p = 0; p < kMost; ++p) {
            const Process& process = world.processes[static_cast<size_t>(p)];
            if (process.dead || has_finished(process, p)) continue;
            any |= take(world, p);
            if (dead > 0 && !process.knows_of_death) {
                change(world, p, " learns", [](Process& one) { one.knows_of_death = true; });
                any = true;
            }
            if (dead < plan_.deaths) change(world, p, " dies", [](Process& one) { one.dead = true; });
        }
        check(world);
        if (!any) check_end(world, dead);
    }

    bool has_finished(const Process& process, int p) const { return process.comm == comms_of_[static_cast<size_t>(p)].size(); }
    template <typename Change>
    void change(const World& world, int p, const char* what, const Change& apply) {
        World next = world;
        next.trace += std::to_string(p) + what + ", ";
        apply(next.processes[static_cast<size_t>(p)]);
        push(std::move(next));
    }

    void load(const Slot& slot) {
        words_->context.store(slot.context);
        words_->state.store(slot.state);
        words_->left[0].store(slot.left);
        words_->arrived.store(slot.arrived);
    }
    void save(Slot& slot) const {
        slot = {words_->context.load(), words_->state.load(), words_->left[0].load(), words_->arrived.load()};
    }

    /// Takes the next step of process `p`; returns false if it can only wait.
    bool take(const World& world, int p) {
        const Process& now = world.processes[static_cast<size_t>(p)];
        if (now.step == Step::wait) return wait(world, p);
        World next = world;
        next.trace += std::to_string(p) + " steps, ";
        Process& process = next.processes[static_cast<size_t>(p)];
        const size_t comm = comms_of_[static_cast<size_t>(p)][process.comm];
        const uint8_t at = process.step == Step::vote ? process.mine : process.slot;
        load(next.slots[at % kSlots]);
        advance(next, process, comm, position(comm, p));
        save(next.slots[at % kSlots]);
        push(std::move(next));
        return true;
    }

    void advance(const World& world, Process& process, size_t comm, int me) {
        AgreementSlot slot(*words_, context_of(comm));
        const int members = static_cast<int>(plan_.communicators[comm].size());
        const auto go = [&](Step again, Step then) {
            const bool last = ++process.slot == kSlots;
            if (last) process.slot = 0;
            process.step = last ? then : again;
        };
        const auto use = [&] {
            process.mine = process.slot;
            process.slot = 0;
            process.step = Step::vote;
        };
        switch (process.step) {
            case Step::look:
                if (slot.is_ours()) return use();
                return go(Step::look, Step::claim);
            case Step::claim:
                if (slot.claim()) {
                    reused += comm >= kSlots;
                    return use();
                }
                return go(Step::claim, Step::vote);
            case Step::vote:
                if (process.mine < kSlots && process.knows_of_death) MemoryConsensus(*words_, members).close();
                if (process.mine == kSlots || MemoryConsensus(*words_, members).closed())
                    process.by_messages = true;
                else if (MemoryConsensus(*words_, members).arrive())
                    MemoryConsensus(*words_, members).decide(0);
                process.step = Step::wait;
                return;
            case Step::find_ours:
                if (slot.is_ours())
                    process.step = Step::leave;
                else
                    next_slot(process);
                return;
            case Step::leave:
                slot.leave(me);
                process.step = Step::count;
                return;
            case Step::count: {
                const auto has_ended = [&](int member) {
                    return process.knows_of_death &&
                           world.processes[static_cast<size_t>(plan_.communicators[comm][static_cast<size_t>(member)])].dead;
                };
                if (slot.all_left(members, has_ended))
                    process.step = Step::begin_release;
                else
                    next_slot(process);
                return;
            }
            case Step::begin_release:
                if (slot.begin_release())
                    process.step = Step::clear;
                else
                    next_slot(process);
                return;
            case Step::clear:
                slot.clear();
                process.step = Step::end_release;
                return;
            case Step::end_release:
                slot.end_release();
                return next_slot(process);
            case Step::wait:
            case Step::finished:
                return;
        }
    }

    /// Goes on to the next slot that the process leaves, then to its next communicator.
    static void next_slot(Process& process) {
        process.step = Step::find_ours;
        if (++process.slot < kSlots) return;
        const uint8_t comm = process.comm;
        const auto outcomes = process.outcomes;
        const bool knows = process.knows_of_death;
        process = {};
        process.comm = comm + 1;
        process.outcomes = outcomes;
        process.knows_of_death = knows;
    }

    bool wait(const World& world, int p) {
        const Process& process = world.processes[static_cast<size_t>(p)];
        const size_t comm = comms_of_[static_cast<size_t>(p)][process.comm];
        const auto end = [&](uint8_t outcome) {
            change(world, p, outcome == 1 ? " reads" : " gets a message", [&](Process& one) {
                one.outcomes[one.comm] = outcome;
                one.step = Step::find_ours;
                one.slot = 0;
            });
            return true;
        };
        if (process.mine < kSlots && !process.by_messages) {
            const uint64_t state = world.slots[process.mine].state;
            if (state >> 1) return end(1);
            if (state & 1) {
                change(world, p, " votes by messages", [](Process& one) { one.by_messages = true; });
                return true;
            }
        }
        const bool closes = close_others(world, p, comm);
        if (process.by_messages && all_by_messages(world, comm)) return end(2);
        return closes;
    }

    /// Lets the process look for other slots of its communicator, and close its own after a death. Returns whether this changed anything.
    bool close_others(const World& world, int p, size_t comm) {
        const Process& process = world.processes[static_cast<size_t>(p)];
        World next = world;
        next.trace += std::to_string(p) + " closes, ";
        const auto close = [&](size_t slot) {
            if (!(next.slots[slot].state & 1)) next.slots[slot].state |= 1;
        };
        for (size_t slot = 0; slot < kSlots; ++slot) {
            if (slot == process.mine || next.slots[slot].context != context_of(comm)) continue;
            ++different_slots;
            close(slot);
            if (process.mine < kSlots) close(process.mine);
        }
        if (process.knows_of_death && process.mine < kSlots) close(process.mine);
        const bool any = next.key() != world.key();
        if (any) push(std::move(next));
        return any;
    }

    bool all_by_messages(const World& world, size_t comm) const {
        return std::all_of(plan_.communicators[comm].begin(), plan_.communicators[comm].end(), [&](int member) {
            const Process& one = world.processes[static_cast<size_t>(member)];
            const auto& comms = comms_of_[static_cast<size_t>(member)];
            if (one.dead) return true;
            const size_t index = static_cast<size_t>(std::find(comms.begin(), comms.end(), comm) - comms.begin());
            return one.outcomes[index] == 2 || (one.comm == index && one.by_messages);
        });
    }

    /// A slot stays its users' until they have left it, and an agreement ends in one way on all members.
    void check(const World& world) {
        for (int p = 0; p < kMost; ++p) {
            const Process& process = world.processes[static_cast<size_t>(p)];
            if (process.dead || has_finished(process, p)) continue;
            const size_t comm = comms_of_[static_cast<size_t>(p)][process.comm];
            if (process.mine < kSlots && process.step <= Step::wait && world.slots[process.mine].context != context_of(comm))
                fail(world, "a slot was released while a member used it");
        }
        for (size_t comm = 0; comm < plan_.communicators.size(); ++comm) {
            std::set<int> outcomes;
            for (const int member : plan_.communicators[comm]) {
                const auto& comms = comms_of_[static_cast<size_t>(member)];
                const size_t index = static_cast<size_t>(std::find(comms.begin(), comms.end(), comm) - comms.begin());
                outcomes.insert(world.processes[static_cast<size_t>(member)].outcomes[index]);
            }
            outcomes.erase(0);
            if (outcomes.size() > 1) fail(world, "an agreement was decided in memory and by messages");
        }
    }

    void check_end(const World& world, int dead) {
        for (int p = 0; p < kMost; ++p) {
            const Process& process = world.processes[static_cast<size_t>(p)];
            if (!process.dead && !has_finished(process, p)) fail(world, "a process waits for ever");
        }
        for (const Slot& slot : world.slots) {
            if (dead > 0) continue;
            if (slot.context || slot.state || slot.left || slot.arrived) fail(world, "a slot stays in use");
        }
    }

    const Plan plan_;
    std::array<std::vector<size_t>, kMost> comms_of_;
    std::unique_ptr<link::AgreementWords> words_ = std::make_unique<link::AgreementWords>();
};

TEST(AgreementSlots, AreReleasedByAllAndUsedAgain) {
    // The second communicator frees slots while the members of the first and third look for one.
    Slots slots({{{0, 1}, {1, 2}, {0, 2}}, 0});
    test::explore(slots);
    EXPECT_GT(slots.reused, 0u);
}

TEST(AgreementSlots, OfOneCommunicatorAreClosedIfMembersClaimDifferentOnes) {
    // Process 2 alone claims and releases a slot twice, which the others see at different times.
    Slots slots({{{2}, {0, 1}, {2}}, 0});
    test::explore(slots);
    EXPECT_GT(slots.different_slots, 0u);
}

TEST(AgreementSlots, AreReleasedOnlyWhenNobodyLivesThatUsesThem) {
    Slots two({{{0, 1}, {1, 2}, {0, 2}}, 1});
    test::explore(two);
    Slots three({{{0, 1, 2}, {0, 1}}, 1});
    test::explore(three);
}

/// A region whose words are zero.
struct alignas(4096) Memory {
    std::byte bytes[shm::kRingsOffset]{};
};

uint64_t context_number(uint64_t number) { return number << 4 | 1; }

TEST(AgreementSlots, AreClaimedOncePerCommunicator) {
    const auto memory = std::make_unique<Memory>();
    const link::SegmentRegion region(memory->bytes);
    std::set<link::AgreementWords*> slots;
    for (uint64_t i = 0; i < link::kAgreementSlots; ++i) {
        link::AgreementWords* const words = claim_words(region, context_number(i * i + 1));
        ASSERT_NE(words, nullptr);
        EXPECT_EQ(claim_words(region, context_number(i * i + 1)), words);
        slots.insert(words);
    }
    EXPECT_EQ(slots.size(), link::kAgreementSlots);
    EXPECT_EQ(claim_words(region, context_number(5'000'000)), nullptr);
}

TEST(AgreementSlots, ServeThousandsOfCommunicatorsOneAfterTheOther) {
    const auto memory = std::make_unique<Memory>();
    const link::SegmentRegion region(memory->bytes);
    const auto lives = [](int) { return false; };
    for (uint64_t i = 1; i <= 5000; ++i) {
        link::AgreementWords* const words = claim_words(region, context_number(i));
        ASSERT_NE(words, nullptr);
        ASSERT_EQ(words->state.load(), 0u);
        MemoryConsensus(*words, 3).close();
        for (int member = 0; member < 3; ++member) leave_words(region, context_number(i), member, 3, lives);
    }
}

TEST(AgreementSlots, StayInUseUntilTheLastMemberHasLeftOrEnded) {
    const auto memory = std::make_unique<Memory>();
    const link::SegmentRegion region(memory->bytes);
    constexpr int kMembers = 200;
    const uint64_t context = context_number(7);
    link::AgreementWords* const words = claim_words(region, context);
    for (int member = 0; member < kMembers - 2; ++member)
        leave_words(region, context, member, kMembers, [](int) { return false; });
    leave_words(region, context, kMembers - 2, kMembers, [](int) { return false; });
    EXPECT_EQ(words->context.load(), context);
    leave_words(region, context, 0, kMembers, [](int member) { return member == kMembers - 1; });
    EXPECT_EQ(words->context.load(), 0u);
    EXPECT_EQ(words->left[3].load(), 0u);
}

}  // namespace
}  // namespace starling::collective
