// What ranks do to each other's memory between two moments at which all are done, drawn by all of them alike, and the plain model of what is in
// each one's memory then. What ranks do to one target at a time the standards allow: each has an area of its own there, and
// what they share is changed by updates of one kind, or under a lock.
#pragma once

#include <vector>

#include "player.h"

namespace starling::simulation {

enum class Do : uint8_t { put, strided_put, add_all, get, put_signal, add_shared, ticket, swap, locked };

struct Act {
    Do what;
    int origin, target;
    uint64_t id;       ///< what its data is made of
    uint64_t was = 0;  ///< swap: what is there; ticket: how many were drawn before
};

/// The program, and memory as it must be: in words.
class MemoryModel {
  public:
    MemoryModel(uint64_t seed, const Step& step, int members)
        : n(members), words(kSizes[mix(seed + step.id) % 4]), random(mix(seed) ^ step.id), memory_(static_cast<size_t>(n)) {
        for (auto& each : memory_) each.assign(size(), 0);
    }
    // Where things are: the areas, words that all add to, the tickets, words to swap, signals, and one that a lock guards.
    size_t area_of(int origin) const { return static_cast<size_t>(origin) * words; }
    size_t shared_word(uint64_t id) const { return static_cast<size_t>(n) * words + id % kShared; }
    size_t ticket_word() const { return static_cast<size_t>(n) * words + kShared; }
    size_t swap_word(int origin) const { return ticket_word() + 1 + static_cast<size_t>(origin); }
    size_t signal_word(int origin) const { return swap_word(n) + static_cast<size_t>(origin); }
    size_t locked_word() const { return signal_word(n); }
    size_t size() const { return locked_word() + 1; }
    uint64_t at(int rank, size_t index) const { return memory_[static_cast<size_t>(rank)][index]; }

    /// What the members do next, of these kinds: of what could meet in one place each pair does one thing.
    template <size_t kinds>
    std::vector<Act> draw(const Do (&list)[kinds]) {
        std::vector<Act> acts;
        std::vector<bool> area(static_cast<size_t>(n * n)), swapped(static_cast<size_t>(n * n));
        const uint64_t count = random.between(0, 4 * static_cast<uint64_t>(n));
        for (uint64_t i = 0; i < count; ++i) {
            const Do what = random.one_of(list);
            const int origin = draw_rank(), target = draw_rank();
            Act act{what, origin, target, random.next() | 1};
            const auto pair = static_cast<size_t>(act.origin * n + act.target);
            if (act.what <= Do::put_signal) {
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
            if (act.what == Do::put || act.what == Do::put_signal) target[area + i] = word(act.id, i);
            if (act.what == Do::strided_put && i % 2 == 0) target[area + i] = word(act.id, i / 2);
            if (act.what == Do::add_all) target[area + i] += word(act.id, i);
        }
        if (act.what == Do::put_signal) ++target[signal_word(act.origin)];
        if (act.what == Do::add_shared) target[shared_word(act.id)] += word(act.id, 0);
        if (act.what == Do::ticket) ++target[ticket_word()];
        if (act.what == Do::swap) target[swap_word(act.origin)] = act.id;
        if (act.what == Do::locked) ++target[locked_word()];
    }

    const int n;
    const uint32_t words;  ///< of each one's area at each
    Random random;

  private:
    static constexpr uint32_t kSizes[] = {2, 40, 700, 5000};
    static constexpr int kShared = 3;
    int draw_rank() { return static_cast<int>(random.below(static_cast<uint64_t>(n))); }
    std::vector<std::vector<uint64_t>> memory_;
};

/// Ends the run if what came of an act, which had this result, is not as it must be. `later`: what all did is in the model.
void check_result(const MemoryModel& model, const Act& act, const std::vector<uint64_t>& result, bool later, const char* what);
/// Ends the run if this rank's memory is not as it must be.
void check_memory(const MemoryModel& model, int rank, const uint64_t* memory, const char* what);

}  // namespace starling::simulation
