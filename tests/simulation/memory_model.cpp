#include "memory_model.h"

#include <algorithm>
#include <cinttypes>

namespace starling::simulation {

namespace {

uint64_t word_of(const std::vector<uint64_t>& area, size_t index) { return area.empty() ? 0 : area[index]; }

/// Returns the index of the first word that differs from the area; `words` if none does.
size_t first_wrong(const std::vector<uint64_t>& area, const uint64_t* memory, size_t words) {
    size_t i = 0;
    if (area.empty())
        while (i < words && memory[i] == 0) ++i;
    else
        while (i < words && memory[i] == area[i]) ++i;
    return i;
}

}  // namespace

// Adds possible values of a word that a dead rank may have accessed: `value` itself, or, if `adds`, each possible value plus `value`.
void MemoryModel::may_become(size_t index, uint64_t now, uint64_t value, bool adds) {
    std::vector<uint64_t>& others = others_[index];
    for (size_t i = 0, known = others.size(); adds && i < known; ++i) others.push_back(others[i] + value);
    others.push_back(adds ? now + value : value);
}

void MemoryModel::may_apply(const Act& act) {
    if (act.what == Do::ticket) ++late_tickets_[act.target];
    if (act.target != me) return;
    const size_t begin = area_of(act.origin);
    const std::vector<uint64_t>& now = area(act.origin, me);
    for (uint32_t i = 0; i < words; ++i) {
        if (act.what == Do::put || act.what == Do::put_signal) may_become(begin + i, 0, word(act.id, i), false);
        if (act.what == Do::strided_put && i % 2 == 0) may_become(begin + i, 0, word(act.id, i / 2), false);
        if (act.what == Do::add_all) may_become(begin + i, word_of(now, i), word(act.id, i), true);
    }
    const auto add = [&](size_t index, uint64_t value) { may_become(index, single(me, index), value, true); };
    if (act.what == Do::put_signal) add(signal_word(act.origin), 1);
    if (act.what == Do::add_shared) add(shared_word(act.id), word(act.id, 0));
    if (act.what == Do::ticket) add(ticket_word(), 1);
    if (act.what == Do::swap) may_become(swap_word(act.origin), 0, act.id, false);
    if (act.what == Do::locked) add(locked_word(), 1);
}

// Compares byte by byte: an access that travels in fragments may stop within a word.
bool MemoryModel::may_be(size_t index, uint64_t value) const {
    const auto others = others_.find(index);
    if (others == others_.end()) return false;
    const bool in_area = index < shared_word(0);
    const uint64_t now = in_area ? word_of(area(static_cast<int>(index / words), me), index % words) : single(me, index);
    for (int shift = 0; shift < 64; shift += 8) {
        const auto same = [&](uint64_t other) { return (other >> shift & 0xff) == (value >> shift & 0xff); };
        if (!same(now) && std::none_of(others->second.begin(), others->second.end(), same)) return false;
    }
    return true;
}

void check_result(const MemoryModel& model, const Act& act, const std::vector<uint64_t>& result, bool later, const char* what) {
    if (later) {
        if (act.what == Do::ticket && (result[0] < act.was || result[0] >= model.most_tickets(act.target)))
            fail_run("%s: ticket %" PRIu64 " at %d was not drawn there", what, result[0], act.target);
        return;
    }
    // A get returns the earlier contents of the area, to which no other rank writes.
    if (act.what == Do::get)
        if (const size_t i = first_wrong(model.area(act.origin, act.target), result.data(), model.words); i < model.words)
            fail_run("%s: word %zu got from %d is %" PRIx64 ", should be %" PRIx64, what, i, act.target, result[i],
                     word_of(model.area(act.origin, act.target), i));
    if (act.what == Do::swap && result[0] != act.was)
        fail_run("%s: a swap at %d found %" PRIx64 ", should be %" PRIx64, what, act.target, result[0], act.was);
}

void check_memory(const MemoryModel& model, const uint64_t* memory, const char* what) {
    const auto check = [&](size_t index, uint64_t wanted) {
        if (memory[index] != wanted && !model.may_be(index, memory[index]))
            fail_run("%s: word %zu of the memory is %" PRIx64 ", should be %" PRIx64, what, index, memory[index], wanted);
    };
    for (int origin = 0; origin < model.n; ++origin) {
        const std::vector<uint64_t>& area = model.area(origin, model.me);
        const size_t begin = model.area_of(origin);
        for (size_t i = first_wrong(area, memory + begin, model.words); i < model.words; ++i)
            check(begin + i, word_of(area, i));
    }
    for (size_t i = model.shared_word(0); i < model.size(); ++i) check(i, model.single(model.me, i));
}

}  // namespace starling::simulation
