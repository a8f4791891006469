#include "transport/verbs/ports.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/counters.h"
#include "base/error.h"
#include "mpi.h"
#include "transport/verbs/plugin.h"

namespace starling::verbs {

namespace {

constexpr int kMostListed = 64;
constexpr uint64_t kRefreshInterval = 1'000'000'000;
/// Time (ns) after which a port is reopened because its device was reset: the port is up for the kernel, but has reported no `up` event.
constexpr uint64_t kStuckAfter = 2'000'000'000;

void report(const PortFacts& facts, const char* what) {
    if (config().verbose >= 1) std::fprintf(stderr, "starling: verbs: %s:%u: %s\n", facts.device, facts.port, what);
}

}  // namespace

int Ports::open(std::unique_ptr<Ports>& out) {
    const bool required = config().verbs == VerbsUse::require;
    if (config().verbs == VerbsUse::off) return MPI_SUCCESS;
    if (!has_device()) {
        if (!required) return MPI_SUCCESS;
        return fail(MPI_ERR_OTHER,
                    "STARLING_VERBS=require is set, and the kernel of this host lists no InfiniBand or RoCE device: load its "
                    "driver (`rdma link` lists devices), or set STARLING_VERBS=auto");
    }
    const Plugin* const plugin = load_plugin();
    if (plugin) return open(*plugin, !plugin_is_a_tests(), out);
    if (required) return MPI_ERR_OTHER;
    if (config().verbose >= 1)
        std::fprintf(stderr, "starling: verbs: %.*s\n", static_cast<int>(failure_text().size()), failure_text().data());
    clear_failure();
    return MPI_SUCCESS;
}

int Ports::open(const Plugin& plugin, std::unique_ptr<Ports>& out) { return open(plugin, false, out); }

int Ports::open(const Plugin& plugin, bool kernels, std::unique_ptr<Ports>& out) {
    std::unique_ptr<Ports> made(new Ports(plugin, kernels));
    if (const int error = DeviceChoice::parse(config().verbs_devices, made->choice_)) return error;
    made->refresh(now_ns(), true);
    const bool any =
        std::any_of(made->places_, made->places_ + kMost, [](const PortSlot& place) { return place.port != nullptr; });
    if (!any && config().verbs == VerbsUse::require)
        return fail(MPI_ERR_OTHER, "STARLING_VERBS=require is set, and no InfiniBand or RoCE port can be used: %s",
                    made->why_not_[0] ? made->why_not_ : "no device has any");
    out = std::move(made);
    return MPI_SUCCESS;
}

Ports::~Ports() {
    for (PortSlot& place : places_) close(place);
}

void Ports::refresh(uint64_t now, bool thoroughly) {
    if (now < refresh_at_ && !thoroughly) return;
    refresh_at_ = now + kRefreshInterval;
    bool look = thoroughly;
    if (kernels_) {
        const uint64_t seen = devices_seen();
        look |= seen != seen_;
        seen_ = seen;
    }
    for (PortSlot& place : places_) {
        if (!place.port || place.usable || !kernels_) continue;
        const Link link = link_of(place.device, place.number);
        if (link == Link::down || (link == Link::active && now - place.down_at < kStuckAfter)) continue;
        close(place);
        look = true;
    }
    if (look) open_new();
}

/// Opens all ports that are selected, usable and not open yet.
void Ports::open_new() {
    std::vector<PortFacts> all(kMostListed);
    const DeviceOptions options = configured_options();
    const int count = std::min(plugin_.list(all.data(), kMostListed, &options), kMostListed);
    why_not_[0] = '\0';
    for (int i = 0; i < count; ++i) {
        const PortFacts& facts = all[static_cast<size_t>(i)];
        if (!choice_.takes(facts.device, facts.port)) {
            note_unused(facts, "not among STARLING_VERBS_DEVICES");
        } else if (facts.why_not[0] != '\0') {
            note_unused(facts, facts.why_not);
        } else if (!facts.active) {
            note_unused(facts, "its link is down");
        } else if (PortSlot* const place = place_for(facts); !place) {
            note_unused(facts, "more ports than are used at a time; STARLING_VERBS_DEVICES chooses others");
        } else if (!place->port) {
            open_port(*place, facts);
        }
    }
}

/// Returns the slot that the port has or had, else a free one. Null: all are in use.
Ports::PortSlot* Ports::place_for(const PortFacts& facts) {
    PortSlot* free = nullptr;
    for (PortSlot& place : places_) {
        if (place.number == facts.port && std::strcmp(place.device, facts.device) == 0) return &place;
        const bool fresh = place.device[0] == '\0';
        if (!place.port && (!free || (fresh && free->device[0] != '\0'))) free = &place;
    }
    return free;
}

bool Ports::open_port(PortSlot& place, const PortFacts& facts) {
    const DeviceOptions options = configured_options();
    char problem[512] = "";
    Port* const port = plugin_.open(&facts, &options, problem, sizeof problem);
    if (!port) {
        note_unused(facts, problem);
        return false;
    }
    place.port = port;
    std::memcpy(place.device, facts.device, sizeof place.device);
    place.number = facts.port;
    place.down_at = 0;
    watch(place);
    change(place, true);
    report(facts, "used");
    return true;
}

void Ports::close(PortSlot& place) {
    if (!place.port) return;
    if (place.usable) change(place, false);
    if (listener_) listener_->closing(static_cast<uint16_t>(&place - places_), *place.port);
    place.port->close();
    place.port = nullptr;
}

void Ports::change(PortSlot& place, bool usable) {
    place.usable = usable;
    if (!usable) place.down_at = now_ns();
    ++version_;
}

void Ports::note_unused(const PortFacts& facts, const char* why) {
    report(facts, why);
    const size_t used = std::strlen(why_not_);
    std::snprintf(why_not_ + used, sizeof why_not_ - used, "%s%s:%u: %s", used ? "; " : "", facts.device, facts.port, why);
}

void Ports::watch(int epoll, uint64_t data) {
    epoll_ = epoll;
    epoll_data_ = data;
    for (PortSlot& place : places_)
        if (place.port) watch(place);
}

void Ports::watch(PortSlot& place) {
    if (epoll_ < 0) return;
    epoll_event readable{};
    readable.events = EPOLLIN;
    readable.data.u64 = epoll_data_;
    (void)epoll_ctl(epoll_, EPOLL_CTL_ADD, place.port->wait_fd(), &readable);
}

int Ports::poll() {
    for (; at_ < kMost; ++at_) {
        if (!places_[at_].port) continue;
        if (events_count_ == 0) {
            events_count_ = places_[at_].port->poll(events_, kBatch);
            event_ = 0;
        }
        for (; event_ < events_count_; ++event_) handle(at_, events_[event_]);
        events_count_ = 0;
    }
    at_ = 0;
    return std::exchange(datagram_count_, 0);
}

void Ports::handle(uint16_t index, const VerbsEvent& event) {
    PortSlot& place = places_[index];
    switch (event.kind) {
        case VerbsEvent::VerbsEventKind::datagram:
            datagrams_[datagram_count_++] = {index, event};
            brought_ = true;
            return;
        case VerbsEvent::VerbsEventKind::room:
            if (event.user) return notify_listener(index, event);
            room_ = true;
            return;
        case VerbsEvent::VerbsEventKind::down:
        case VerbsEvent::VerbsEventKind::up:
            ++starling::counters.verbs_events;
            // An `up` event counts even if the port was not known to be down: its address may have changed.
            change(place, event.kind == VerbsEvent::VerbsEventKind::up);
            report(place.port->facts(), place.usable ? "up" : "down");
            return notify_listener(index, event);
        case VerbsEvent::VerbsEventKind::frame:
        case VerbsEvent::VerbsEventKind::note:
        case VerbsEvent::VerbsEventKind::done:
        case VerbsEvent::VerbsEventKind::broken:
            brought_ = true;
            // Drop events without a user: they belong to a queue that was closed.
            if (event.user) notify_listener(index, event);
            if (event.buffer) place.port->return_buffer(event);
            return;
    }
}

void Ports::notify_listener(uint16_t index, const VerbsEvent& event) {
    if (listener_) listener_->happened(index, *places_[index].port, event);
}

void Ports::forget(const void* user) {
    for (int i = event_ + 1; i < events_count_; ++i)
        if (events_[i].user == user) events_[i].user = nullptr;
}

bool Ports::fetch_room() {
    const bool room = room_;
    room_ = false;
    return room;
}

bool Ports::arm() {
    bool quiet = true;
    for (const PortSlot& place : places_)
        if (place.port) quiet &= place.port->arm();
    return quiet;
}

PortCounters Ports::counters() const {
    PortCounters all;
    for (const PortSlot& place : places_) {
        if (!place.port) continue;
        const PortCounters one = place.port->counters();
        all.registered_bytes += one.registered_bytes;
        all.queue_bytes += one.queue_bytes;
        all.queues += one.queues;
        all.datagrams_sent += one.datagrams_sent;
        all.datagrams_received += one.datagrams_received;
        all.frames_sent += one.frames_sent;
        all.frames_received += one.frames_received;
        all.transfers += one.transfers;
        all.queue_memory += one.queue_memory;
        all.address_handles += one.address_handles;
    }
    return all;
}

}  // namespace starling::verbs
