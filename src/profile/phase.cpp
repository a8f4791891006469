#include "profile/phase.h"

#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/phase_name.h"
#include "base/state.h"
#include "profile/collectives.h"
#include "profile/files.h"
#include "profile/traffic.h"
#include "profile/waits.h"

namespace starling::profile {

namespace {

struct Phases {
    Phases() { all[add("", PhaseMark::start)].occurrences = 1; }
    PhaseId add(std::string_view name, PhaseMark mark) {
        const auto id = static_cast<PhaseId>(all.size());
        all.push_back({std::string(name), mark, 0, 0});
        by_name.emplace(name, id);
        return id;
    }
    std::vector<Phase> all;
    std::unordered_map<std::string, PhaseId> by_name;
    PhaseId now = 0;
};
STARLING_STATE Lazy<Phases> known;
STARLING_STATE PhaseListener phase_listeners[kListeners] = {};
STARLING_STATE uint32_t phase_listener_count = 0;

}  // namespace

PhaseId begin_phase(std::string_view name, PhaseMark mark) {
    Phases& phases = known.get();
    const auto found = phases.by_name.find(std::string(name));
    const PhaseId begun = found == phases.by_name.end() ? phases.add(name, mark) : found->second;
    for (uint32_t i = 0; i < phase_listener_count; ++i) phase_listeners[i](phases.now, begun);
    clear_counts();
    phases.now = begun;
    ++phases.all[begun].occurrences;
    phases.all[begun].began = now_ns();
    publish_phase_name(name);
    return begun;
}

void clear_counts() {
    clear_traffic();
    clear_collectives();
    clear_waits();
    clear_files();
}

PhaseId current_phase() { return known.get().now; }

const Phase& phase(PhaseId id) { return known.get().all[id]; }

uint32_t phases() { return static_cast<uint32_t>(known.get().all.size()); }

void listen_to_phases(PhaseListener listener) {
    if (phase_listener_count < kListeners) phase_listeners[phase_listener_count++] = listener;
}

}  // namespace starling::profile
