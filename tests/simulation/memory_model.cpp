#include "memory_model.h"

#include <cinttypes>

namespace starling::simulation {

void check_result(const MemoryModel& model, const Act& act, const std::vector<uint64_t>& result, bool later, const char* what) {
    if (later) {
        if (act.what == Do::ticket && (result[0] < act.was || result[0] >= model.at(act.target, model.ticket_word())))
            fail_run("%s: ticket %" PRIu64 " at %d was not drawn there", what, result[0], act.target);
        return;
    }
    // What was got is what was there before, in the area that nobody else writes to.
    for (uint32_t i = 0; act.what == Do::get && i < model.words; ++i)
        if (const uint64_t there = model.at(act.target, model.area_of(act.origin) + i); result[i] != there)
            fail_run("%s: word %u got from %d is %" PRIx64 ", should be %" PRIx64, what, i, act.target, result[i], there);
    if (act.what == Do::swap && result[0] != act.was)
        fail_run("%s: a swap at %d found %" PRIx64 ", should be %" PRIx64, what, act.target, result[0], act.was);
}

void check_memory(const MemoryModel& model, int rank, const uint64_t* memory, const char* what) {
    for (size_t i = 0; i < model.size(); ++i)
        if (memory[i] != model.at(rank, i))
            fail_run("%s: word %zu of the memory is %" PRIx64 ", should be %" PRIx64, what, i, memory[i], model.at(rank, i));
}

}  // namespace starling::simulation
