#include "collective/algorithm_override.h"

#include <charconv>
#include <cstdio>
#include <map>
#include <tuple>

#include "base/config.h"
#include "base/error.h"
#include "base/state.h"
#include "mpi.h"

namespace starling::collective {

namespace {

/// Key of a plan's choice: operation, size class, number of processes.
using ChoiceKey = std::tuple<CollectiveKind, uint8_t, int>;
STARLING_STATE Lazy<std::map<ChoiceKey, const Algorithm*>> choices;

enum class Steered : uint8_t { not_known, no, by_plan, by_turns };
STARLING_STATE Steered steered = Steered::not_known;

Steered find_out() {
    const Config& settings = config();
    if (settings.profile && settings.profile_explore) return Steered::by_turns;
    const char* const text = settings.plan_collectives;
    const bool planned = settings.plan == PlanSource::file || settings.plan == PlanSource::cached;
    if (!planned || !text || !*text) return Steered::no;
    if (read_planned(text) != MPI_SUCCESS) {
        std::fprintf(stderr, "starling: STARLING_PLAN_COLLECTIVES: %s\n", std::string(failure_text()).c_str());
        clear_failure();
        return Steered::no;
    }
    return choices.get().empty() ? Steered::no : Steered::by_plan;
}

const Algorithm* algorithm_named(CollectiveKind kind, std::string_view name) {
    for (int i = 0; const Algorithm* algorithm = algorithm_of(kind, i); ++i)
        if (algorithm->name == name) return algorithm;
    return nullptr;
}

/// Reads one entry of STARLING_PLAN_COLLECTIVES; returns false if it is not valid.
bool read_one(std::string_view text, ChoiceKey& place, const Algorithm*& algorithm) {
    const size_t first = text.find('/'), second = text.find('/', first + 1), equals = text.find('=', second + 1);
    if (first == text.npos || second == text.npos || equals == text.npos) return false;
    const auto kind = kind_named(text.substr(0, first));
    const size_t size_class = size_class_named(text.substr(first + 1, second - first - 1));
    const char* const end = text.data() + equals;
    int processes = 0;
    const auto number = std::from_chars(text.data() + second + 1, end, processes);
    if (!kind || size_class == kSizeClassCount || number.ec != std::errc() || number.ptr != end || processes < 2) return false;
    place = {*kind, static_cast<uint8_t>(size_class), processes};
    algorithm = algorithm_named(*kind, text.substr(equals + 1));
    return algorithm != nullptr;
}

}  // namespace

bool steers() {
    if (steered == Steered::not_known) [[unlikely]]
        steered = find_out();
    return steered != Steered::no;
}

// Members may disagree on whether a multicast pays (select.h), so an override never chooses multicast; the table still may.
const Algorithm* alternative(const CallParameters& call, uint32_t turn) {
    CallParameters known = call;
    known.multicast = known.turns = false;
    const Algorithm* const usual = &select(known);
    const Algorithm* able[16];
    uint32_t count = 0;
    able[count++] = &select(call);
    for (int i = 0; const Algorithm* algorithm = algorithm_of(call.kind, i); ++i)
        if (algorithm != usual && can_serve(*algorithm, known) && count < std::size(able)) able[count++] = algorithm;
    return count > 1 ? able[turn / kCallsInARow % count] : nullptr;
}

int read_planned(std::string_view text) {
    choices.get().clear();
    while (!text.empty()) {
        const std::string_view one = text.substr(0, text.find(';'));
        text.remove_prefix(std::min(text.size(), one.size() + 1));
        ChoiceKey place;
        const Algorithm* algorithm = nullptr;
        if (!read_one(one, place, algorithm))
            return fail(MPI_ERR_ARG,
                        "\"%.*s\" is not of the form operation/size class/processes=algorithm; `starling info --collectives` "
                        "lists the algorithms",
                        static_cast<int>(one.size()), one.data());
        choices.get()[place] = algorithm;
    }
    return MPI_SUCCESS;
}

const Algorithm* planned(const CallParameters& call) {
    const auto found = choices.get().find({call.kind, size_class_of(call.bytes), call.n});
    return found == choices.get().end() ? nullptr : found->second;
}

const Algorithm* AlgorithmOverride::next(const CallParameters& call) {
    if (has_override(call.kind)) return nullptr;
    if (steered == Steered::by_plan) return planned(call);
    uint32_t& turn = turns_[static_cast<int>(call.kind)][size_class_of(call.bytes)];
    const Algorithm* const mine = alternative(call, turn);
    if (mine) ++turn;
    return mine;
}

const Algorithm& AlgorithmOverride::choose(const CallParameters& call) {
    if (!drawn_) {
        requested_ = next(call);
        const bool able = requested_ && can_serve(*requested_, call);
        tried_ = able && requested_ != &select(call);
        drawn_ = true;
    }
    return requested_ && can_serve(*requested_, call) ? *requested_ : select(call);
}

}  // namespace starling::collective
