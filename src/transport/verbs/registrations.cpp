#include "transport/verbs/registrations.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace starling::verbs {

Registrations::Registrations(Port& port, MemoryWatch* watch, uint64_t most)
    : port_(port), watch_(watch), most_(most), page_(static_cast<uint64_t>(sysconf(_SC_PAGESIZE))) {}

Registrations::~Registrations() {
    while (!all_.empty()) remove(all_.begin());
}

// Returns exactly the pages that contain the memory: the owner of neighboring pages may unmap them at any time.
PageRange Registrations::pages_of(const void* memory, uint64_t bytes) const {
    const auto begin = reinterpret_cast<uint64_t>(memory);
    return {begin / page_ * page_, (begin + bytes + page_ - 1) / page_ * page_};
}

/// Invalidates registrations of changed memory. Returns whether those that remain are known to be valid now.
bool Registrations::note_changes() {
    PageRange changed[MemoryWatch::kMost];
    bool settled = false;
    const int count = watch_->take(changed, settled);
    if (count < 0) invalidate({0, UINT64_MAX});
    for (int i = 0; i < count; ++i) invalidate(changed[i]);
    return settled;
}

void Registrations::invalidate(const PageRange& changed) {
    const uint64_t from = changed.begin > longest_ ? changed.begin - longest_ : 0;
    for (auto place = all_.lower_bound(from); place != all_.end() && place->first < changed.end;) {
        Registration& one = *place->second;
        const auto next = std::next(place);
        if (one.watched && one.valid && one.pages.meets(changed)) {
            ++counters_.changed;
            one.valid = false;
            if (one.uses == 0) remove(place);
        }
        place = next;
    }
}

Registration* Registrations::find(const PageRange& pages) {
    constexpr int kTries = 8;  // most steps back from the address: stretches rarely overlap, so few steps find the right one
    auto place = all_.upper_bound(pages.begin);
    for (int i = 0; i < kTries && place != all_.begin(); ++i) {
        --place;
        Registration& one = *place->second;
        if (one.watched && one.valid && !one.dismissed && one.pages.end >= pages.end) return &one;
    }
    return nullptr;
}

Registration* Registrations::use(const void* memory, uint64_t bytes) {
    const PageRange pages = pages_of(memory, bytes);
    const bool known = watch_ && note_changes();
    if (known) {
        if (Registration* const one = find(pages)) {
            ++counters_.found;
            ++one->uses;
            one->last_used = ++clock_;
            return one;
        }
    }
    // Watch the memory before the device pins its pages, so that no change is missed.
    const bool watched = known && pages.end - pages.begin <= most_ && watch_->watch(pages);
    Registration* const one = make(pages);
    if (watched && one && watch_->is_own(pages)) {
        one->watched = true;
        one->valid = note_changes() && one->valid;
    } else if (watched) {
        unwatch(pages);
    }
    return one;
}

Registration* Registrations::hold(const void* memory, uint64_t bytes) {
    const PageRange pages = pages_of(memory, bytes);
    for (auto [place, end] = all_.equal_range(pages.begin); place != end; ++place) {
        Registration& one = *place->second;
        if (!one.held || one.dismissed || one.pages.end != pages.end) continue;
        ++one.uses;
        return &one;
    }
    Registration* const made = make(pages);
    if (made) made->held = true;
    return made;
}

Registration* Registrations::make(const PageRange& pages) {
    const uint64_t bytes = pages.end - pages.begin;
    auto made = std::make_unique<Registration>();
    make_room(bytes);
    // Evict until it fits: the kernel's limit may be lower than `most_`.
    while (!port_.enroll(reinterpret_cast<void*>(pages.begin), bytes, true, made->memory))
        if (!evict_one()) return nullptr;
    made->pages = pages;
    made->uses = 1;
    made->last_used = ++clock_;
    bytes_ += bytes;
    longest_ = std::max(longest_, bytes);
    ++counters_.made;
    return all_.emplace(pages.begin, std::move(made))->second.get();
}

/// Evicts unused registrations until `bytes` more fit below the limit. Returns false if they do not.
bool Registrations::make_room(uint64_t bytes) {
    while (bytes_ + bytes > most_)
        if (!evict_one()) return false;
    return true;
}

bool Registrations::evict_one() {
    auto least = all_.end();
    for (auto place = all_.begin(); place != all_.end(); ++place)
        if (place->second->uses == 0 && (least == all_.end() || place->second->last_used < least->second->last_used))
            least = place;
    if (least == all_.end()) return false;
    ++counters_.evicted;
    remove(least);
    return true;
}

void Registrations::done(Registration& registration) {
    if (--registration.uses > 0) return;
    if (registration.watched && registration.valid && !registration.dismissed && bytes_ <= most_) return;
    for (auto [place, end] = all_.equal_range(registration.pages.begin); place != end; ++place) {
        if (place->second.get() != &registration) continue;
        remove(place);
        return;
    }
}

void Registrations::spoil(Registration& registration) { dismiss(registration); }

void Registrations::dismiss(Registration& registration) {
    if (registration.dismissed) return;
    port_.dismiss(registration.memory);
    registration.dismissed = true;
    bytes_ -= registration.pages.end - registration.pages.begin;
}

Registrations::RegistrationMap::iterator Registrations::remove(RegistrationMap::iterator place) {
    Registration& one = *place->second;
    dismiss(one);
    const PageRange pages = one.pages;
    const bool watched = one.watched;
    place = all_.erase(place);
    if (watched) unwatch(pages);
    return place;
}

/// Stops watching the pages, unless another watched registration overlaps them.
void Registrations::unwatch(const PageRange& pages) {
    const uint64_t from = pages.begin > longest_ ? pages.begin - longest_ : 0;
    for (auto place = all_.lower_bound(from); place != all_.end() && place->first < pages.end; ++place)
        if (place->second->watched && place->second->pages.meets(pages)) return;
    watch_->unwatch(pages);
}

}  // namespace starling::verbs
