#include "plans.h"

#include <iterator>

#include "base/size_classes.h"
#include "control/plan_reply.h"

namespace starling::simulation {

namespace {

std::string name_of_phase(uint64_t number) { return "phase " + std::to_string(number); }

constexpr struct {
    const char *kind, *name;
} kAlgorithms[] = {
#define ALGORITHM(kind, name, ...) {#kind, #name},
#define NODE(kind) {#kind, "node"},
#include "collective/algorithms.def"
#undef NODE
#undef ALGORITHM
};

}  // namespace

// Draws from a separate random sequence, so that everything else drawn from a seed stays unchanged.
Plans::Plans(uint64_t seed) : seed_(seed * 31 + 0x91a5) {
    Random random(seed_);
    static constexpr const char* kSources[] = {"demand", "static", "learn", "learn", "file", "file"};
    const bool plain = random.one_in(3);
    source_ = plain ? "demand" : random.one_of(kSources);
    phases_ = static_cast<uint32_t>(random.between(1, 5));
    honest_ = random.one_in(2);
    every_ = plain ? 0 : static_cast<uint32_t>(random.between(1, 12));
    replaces_soon_ = !random.one_in(4);
}

std::string Plans::collectives(uint32_t ranks) const {
    Random random(mix(seed_ + 0xc011));
    std::string all;
    for (uint64_t entries = random.one_in(3) ? random.between(1, 12) : 0; entries > 0; --entries) {
        const auto& [kind, name] = kAlgorithms[random.below(std::size(kAlgorithms))];
        const uint64_t processes = random.one_in(2) ? ranks : random.between(2, ranks);
        all += (all.empty() ? "" : ";") + std::string(kind) + '/' + kSizeClassNames[random.below(kSizeClassCount)] + '/' +
               std::to_string(processes) + '=' + name;
    }
    return all;
}

std::string Plans::mark(uint32_t step, uint32_t rank) const {
    if (every_ == 0 || step % every_ != 0) return {};
    Random alone(mix(seed_ ^ (uint64_t{step} << 20 | rank)));
    // Each rank omits one phase mark in 40, and begins a random phase at another one in 40.
    const uint64_t stray = alone.below(40);
    if (stray == 0) return {};
    Random all(mix(seed_ + step));
    const uint64_t usual = all.one_in(6) ? all.below(phases_) : step / every_ % phases_;
    return name_of_phase(stray == 1 ? alone.below(phases_) : usual);
}

std::string Plans::reply(uint32_t rank, uint32_t ranks) const {
    Random random(mix(seed_ + 77 + rank));
    control::PlanReply reply;
    if (!honest_ && random.one_in(8)) return "no plan at all";
    if (random.one_in(2)) reply.limits = {random.below(4), random.below(4), control::PlanLimits::kNone};
    for (uint32_t phase = 0; phase < phases_; ++phase) {
        uint64_t from = 1;
        for (uint64_t entries = random.between(1, 4); entries > 0; --entries) {
            const uint64_t to = entries == 1 ? control::kForever : from + random.below(5);
            control::PlannedPhase& entry = reply.phases.emplace_back();
            entry.name = name_of_phase(phase);
            entry.from = from;
            entry.to = to;
            for (uint64_t peers = random.below(6); peers > 0; --peers) {
                const auto peer = static_cast<uint32_t>(random.below(honest_ ? ranks : ranks + 2));
                Random pair(mix(seed_ + phase) ^ (uint64_t{1} << rank % 64) ^ (uint64_t{1} << peer % 64));
                const auto priority = static_cast<uint32_t>(1 + (honest_ ? pair : random).below(random.one_in(4) ? 2 : 1000));
                entry.peers.push_back({peer, !honest_ && random.one_in(10) ? UINT32_MAX : priority});
            }
            from = to + 1;
        }
    }
    return encode(reply);
}

}  // namespace starling::simulation
