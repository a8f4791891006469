#include "memory_model.h"

#include <cinttypes>

namespace starling::simulation {

namespace {

uint64_t word_of(const std::vector<uint64_t>& area, size_t index) { return area.empty() ? 0 : area[index]; }

/// The first word that is not as in the area, `words` if all are.
size_t first_wrong(const std::vector<uint64_t>& area, const uint64_t* memory, size_t words) {
    size_t i = 0;
    if (area.empty())
        while (i < words && memory[i] == 0) ++i;
    else
        while (i < words && memory[i] == area[i]) ++i;
    return i;
}

}  // namespace

void check_result(const MemoryModel& model, const Act& act, const std::vector<uint64_t>& result, bool later, const char* what) {
    if (later) {
        if (act.what == Do::ticket && (result[0] < act.was || result[0] >= model.single(act.target, model.ticket_word())))
            fail_run("%s: ticket %" PRIu64 " at %d was not drawn there", what, result[0], act.target);
        return;
    }
    // What was got is what was there before, in the area that nobody else writes to.
    if (act.what == Do::get)
        if (const size_t i = first_wrong(model.area(act.origin, act.target), result.data(), model.words); i < model.words)
            fail_run("%s: word %zu got from %d is %" PRIx64 ", should be %" PRIx64, what, i, act.target, result[i],
                     word_of(model.area(act.origin, act.target), i));
    if (act.what == Do::swap && result[0] != act.was)
        fail_run("%s: a swap at %d found %" PRIx64 ", should be %" PRIx64, what, act.target, result[0], act.was);
}

void check_memory(const MemoryModel& model, const uint64_t* memory, const char* what) {
    const auto check = [&](size_t index, uint64_t wanted) {
        if (memory[index] != wanted)
            fail_run("%s: word %zu of the memory is %" PRIx64 ", should be %" PRIx64, what, index, memory[index], wanted);
    };
    for (int origin = 0; origin < model.n; ++origin) {
        const std::vector<uint64_t>& area = model.area(origin, model.me);
        const size_t begin = model.area_of(origin), wrong = first_wrong(area, memory + begin, model.words);
        if (wrong < model.words) check(begin + wrong, word_of(area, wrong));
    }
    for (size_t i = model.shared_word(0); i < model.size(); ++i) check(i, model.single(model.me, i));
}

}  // namespace starling::simulation
