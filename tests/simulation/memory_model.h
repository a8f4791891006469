// One-sided accesses of ranks between two synchronizations, and a plain model of every rank's memory after them. All ranks draw the same
// accesses. The standards allow them to be concurrent: every origin has a separate area at each target. Shared words are changed only by
// updates of one kind or under a lock.
#pragma once

#include <map>
#include <vector>

#include "player.h"

namespace starling::simulation {

enum class Do : uint8_t { put, strided_put, add_all, get, put_signal, add_shared, ticket, swap, locked };

struct Act {
    Do what;
    int origin, target;
    uint64_t id;       ///< number of the access; determines its data
    uint64_t was = 0;  ///< swap: expected old value; ticket: number of tickets drawn before
};

/// The program of accesses, and the expected memory in words. The model holds only the areas that this member owns or writes; the other
/// members check theirs. With all areas in each rank's model, memory would grow with the square of the members.
class MemoryModel {
  public:
    MemoryModel(uint64_t seed, const Step& step, int members, int own_rank)
        : n(members),
          me(own_rank),
          words(kSizes[mix(seed + step.id) % 4]),
          random(mix(seed) ^ step.id),
          here_(static_cast<size_t>(n)),
          there_(static_cast<size_t>(n)),
          single_(static_cast<size_t>(n) * (size() - shared_word(0))) {}
    // Layout of a rank's memory: the areas, words that all add to, the tickets, swap words, signals, and one word that a lock guards.
    size_t area_of(int origin) const { return static_cast<size_t>(origin) * words; }
    size_t shared_word(uint64_t id) const { return static_cast<size_t>(n) * words + id % kShared; }
    size_t ticket_word() const { return static_cast<size_t>(n) * words + kShared; }
    size_t swap_word(int origin) const { return ticket_word() + 1 + static_cast<size_t>(origin); }
    size_t signal_word(int origin) const { return swap_word(n) + static_cast<size_t>(origin); }
    size_t locked_word() const { return signal_word(n); }
    size_t size() const { return locked_word() + 1; }
    /// Returns one of a rank's words after the areas.
    uint64_t single(int rank, size_t index) const { return single_[place_of_single(rank, index)]; }
    /// Returns the area of `origin` at `target`, one of which must be this member. Empty: never written, all 0.
    const std::vector<uint64_t>& area(int origin, int target) const {
        return target == me ? here_[static_cast<size_t>(origin)] : there_[static_cast<size_t>(target)];
    }

    /// Draws the next accesses of all members, of these kinds. Kinds that could conflict occur once per pair of origin and target.
    template <size_t kinds>
    std::vector<Act> draw(const Do (&list)[kinds]) {
        std::vector<Act> acts;
        std::vector<bool> used(static_cast<size_t>(n * n)), swapped(static_cast<size_t>(n * n));
        const uint64_t count = random.between(0, 4 * static_cast<uint64_t>(n));
        for (uint64_t i = 0; i < count; ++i) {
            const Do what = random.one_of(list);
            const int origin = draw_rank(), target = draw_rank();
            Act act{what, origin, target, random.next() | 1};
            const auto pair = static_cast<size_t>(act.origin * n + act.target);
            if (act.what <= Do::put_signal) {
                if (used[pair]) continue;
                used[pair] = true;
            }
            if (act.what == Do::swap) {
                if (swapped[pair]) continue;
                swapped[pair] = true;
                act.was = single(act.target, swap_word(act.origin));
            }
            if (act.what == Do::ticket) act.was = single(act.target, ticket_word());
            acts.push_back(act);
        }
        return acts;
    }

    void apply(const Act& act) {
        const auto single = [&](size_t index) -> uint64_t& { return single_[place_of_single(act.target, index)]; };
        const bool concerns_me = act.origin == me || act.target == me;
        if (concerns_me && (act.what <= Do::add_all || act.what == Do::put_signal)) write(act);
        if (act.what == Do::put_signal) ++single(signal_word(act.origin));
        if (act.what == Do::add_shared) single(shared_word(act.id)) += word(act.id, 0);
        if (act.what == Do::ticket) ++single(ticket_word());
        if (act.what == Do::add_shared && act.target == me) add_to_others(shared_word(act.id), word(act.id, 0));
        if (act.what == Do::ticket && act.target == me) add_to_others(ticket_word(), 1);
        if (act.what == Do::swap) single(swap_word(act.origin)) = act.id;
        if (act.what == Do::locked) ++single(locked_word());
    }

    /// Records that an access of a dead rank may have happened: not at all, completely, or in part.
    void may_apply(const Act& act);
    /// Returns whether an unexpected value of a word of this member's memory is possible because of accesses of dead ranks.
    bool may_be(size_t index, uint64_t value) const;
    /// Returns the largest possible number of tickets drawn at a rank.
    uint64_t most_tickets(int rank) const {
        const auto late = late_tickets_.find(rank);
        return single(rank, ticket_word()) + (late == late_tickets_.end() ? 0 : late->second);
    }

    const int n, me;
    const uint32_t words;  ///< words per area
    Random random;

  private:
    static constexpr uint32_t kSizes[] = {2, 40, 700, 5000};
    static constexpr int kShared = 3;
    int draw_rank() { return static_cast<int>(random.below(static_cast<uint64_t>(n))); }
    size_t place_of_single(int rank, size_t index) const {
        return static_cast<size_t>(rank) * (size() - shared_word(0)) + index - shared_word(0);
    }
    void may_become(size_t index, uint64_t now, uint64_t added, bool adds);
    void add_to_others(size_t index, uint64_t value) {
        if (const auto at = others_.find(index); at != others_.end())
            for (uint64_t& each : at->second) each += value;
    }
    void write(const Act& act) {
        std::vector<uint64_t>& area =
            act.target == me ? here_[static_cast<size_t>(act.origin)] : there_[static_cast<size_t>(act.target)];
        area.resize(words);
        for (uint32_t i = 0; i < words; ++i) {
            if (act.what == Do::put || act.what == Do::put_signal) area[i] = word(act.id, i);
            if (act.what == Do::strided_put && i % 2 == 0) area[i] = word(act.id, i / 2);
            if (act.what == Do::add_all) area[i] += word(act.id, i);
        }
    }

    std::vector<std::vector<uint64_t>> here_, there_;  ///< areas here, by origin; this member's areas elsewhere, by target
    std::vector<uint64_t> single_;                     ///< single words after the areas, rank by rank
    std::map<size_t, std::vector<uint64_t>> others_;   ///< other possible values of a word, after accesses of dead ranks
    std::map<int, uint64_t> late_tickets_;             ///< tickets that dead ranks may have drawn, by target
};

/// Ends the run if the result of an access is wrong. `later`: the model already contains all ranks' accesses.
void check_result(const MemoryModel& model, const Act& act, const std::vector<uint64_t>& result, bool later, const char* what);
/// Ends the run if this member's memory is wrong.
void check_memory(const MemoryModel& model, const uint64_t* memory, const char* what);

}  // namespace starling::simulation
