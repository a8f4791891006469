#include "plan/phase_detector.h"

#include <algorithm>
#include <tuple>

namespace starling::plan {

namespace {

constexpr uint32_t kWhole = 1'000'000;

bool before(const Partner& a, const Partner& b) { return std::tie(a.job, a.rank) < std::tie(b.job, b.rank); }

Partners shares_of(const Partners& messages) {
    uint64_t all = 0;
    for (const Partner& partner : messages) all += partner.priority;
    Partners shares = messages;
    for (Partner& partner : shares) partner.priority = static_cast<uint32_t>(uint64_t{partner.priority} * kWhole / all);
    std::sort(shares.begin(), shares.end(), before);
    return shares;
}

/// Calls `visit` for each partner in a or b, with its shares in a and in b; a partner that is missing in one has share 0 there.
template <class F>
void merge(const Partners& a, const Partners& b, F visit) {
    auto i = a.begin(), j = b.begin();
    while (i != a.end() || j != b.end()) {
        const bool first = j == b.end() || (i != a.end() && !before(*j, *i));
        const bool second = i == a.end() || (j != b.end() && !before(*i, *j));
        visit(first ? *i : *j, first ? i->priority : 0, second ? j->priority : 0);
        i += first;
        j += second;
    }
}

/// Replaces a pattern by the mean of itself and the new shares, so that it follows a program whose partners change gradually.
void follow(Partners& pattern, const Partners& shares) {
    Partners mean;
    merge(pattern, shares, [&](Partner partner, uint32_t was, uint32_t came) {
        partner.priority = (was + came) / 2;
        if (partner.priority > 0) mean.push_back(partner);
    });
    pattern = std::move(mean);
}

}  // namespace

double overlap(const Partners& a, const Partners& b) {
    uint64_t common = 0;
    merge(a, b, [&](const Partner&, uint32_t one, uint32_t other) { common += std::min(one, other); });
    return static_cast<double>(common) / kWhole;
}

std::optional<uint32_t> PhaseDetector::segment(const Partners& messages) {
    if (pulse_.changes() != pulses_) {
        // The pulse is another call now. Its segments have other patterns, and the current segment is incomplete.
        pulses_ = pulse_.changes();
        patterns_.clear();
        run_phase_ = 0;
        return std::nullopt;
    }
    if (messages.empty()) return std::nullopt;
    ++segments_;
    const Partners shares = shares_of(messages);
    const Pattern& pattern = recognize(shares);
    if (pattern.phase == 0) {
        // A single segment unlike all others may be an exception. After two in a row the current phase counts as unknown.
        const bool lost = ++unmatched_segments_ >= 2 && now_ != 0;
        return lost ? begin(0, shares) : std::nullopt;
    }
    unmatched_segments_ = 0;
    const uint32_t next = expected_after(pattern);
    const bool moved = next == pattern.phase && overlap(begun_with_, shares) < kMoved;
    return next != now_ || moved ? begin(next, shares) : std::nullopt;
}

std::optional<uint32_t> PhaseDetector::begin(uint32_t phase, const Partners& shares) {
    now_ = phase;
    const Pattern* const pattern = of_phase(phase);
    begun_with_ = pattern && phase != run_phase_ ? pattern->shares : shares;
    return phase;
}

PhaseDetector::Pattern* PhaseDetector::of_phase(uint32_t phase) {
    const auto found = std::find_if(patterns_.begin(), patterns_.end(), [=](const Pattern& p) { return p.phase == phase; });
    return phase == 0 || found == patterns_.end() ? nullptr : &*found;
}

// Returns the known pattern most like the segment, or a new one. A pattern that occurs a second time becomes a phase.
PhaseDetector::Pattern& PhaseDetector::recognize(const Partners& shares) {
    Pattern* best = nullptr;
    double most = kAlike;
    for (Pattern& pattern : patterns_) {
        const double common = overlap(pattern.shares, shares);
        if (common >= most) std::tie(best, most) = std::make_tuple(&pattern, common);
    }
    if (best) {
        if (best->phase == 0) best->phase = ++found_;
        follow(best->shares, shares);
    } else {
        const auto oldest = [](const Pattern& a, const Pattern& b) { return a.last_seen < b.last_seen; };
        if (patterns_.size() >= kMostPatterns) patterns_.erase(std::min_element(patterns_.begin(), patterns_.end(), oldest));
        best = &patterns_.emplace_back();
        best->shares = shares;
    }
    best->last_seen = segments_;
    return *best;
}

uint32_t PhaseDetector::expected_after(const Pattern& pattern) {
    if (pattern.phase == run_phase_) {
        ++run_length_;
    } else {
        if (Pattern* const last = of_phase(run_phase_)) {
            last->last_run = run_length_;
            last->successor = pattern.phase;
        }
        run_phase_ = pattern.phase;
        run_length_ = 1;
    }
    const bool over = pattern.successor != 0 && run_length_ >= pattern.last_run;
    return over && of_phase(pattern.successor) ? pattern.successor : pattern.phase;
}

}  // namespace starling::plan
