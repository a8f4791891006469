#include "plan/learned.h"

namespace starling::plan {

const Partners* Learned::partners(profile::PhaseId phase, uint64_t) {
    return phase < last_.size() && last_[phase] ? &*last_[phase] : nullptr;
}

void Learned::ended(profile::PhaseId phase, Partners partners) {
    if (phase >= last_.size()) last_.resize(phase + 1);
    last_[phase] = std::move(partners);
}

}  // namespace starling::plan
