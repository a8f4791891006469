#include "transport/network/rdma/memory_windows.h"

#include <sys/mman.h>

#include <cstdio>

#include "base/config.h"
#include "base/error.h"
#include "base/state.h"
#include "transport/remote_memory.h"

namespace starling::network {

namespace {

/// Returns the one watch that all ports share, since they share the program's memory. Null if the kernel does not permit it; only the first
/// call tries.
verbs::MemoryWatch* memory_watch() {
    STARLING_STATE static verbs::MemoryWatch* watch = nullptr;
    STARLING_STATE static bool asked = false;
    if (asked) return watch;
    asked = true;
    watch = verbs::MemoryWatch::start().release();
    if (!watch && config().verbose >= 1)
        std::fprintf(stderr, "starling: verbs: memory registrations are not cached: %.*s\n",
                     static_cast<int>(failure_text().size()), failure_text().data());
    clear_failure();
    return watch;
}

}  // namespace

RcPort::RcPort(uint8_t place, verbs::Port& port) : place_(place), port_(port) {}

RcPort::~RcPort() { forget_memory(); }

void RcPort::forget_memory() {
    forgotten_ = true;
    while (RegisteredMemory* loan = loans_.pop_front()) {
        loan->port = nullptr;
        loan->registration = nullptr;
    }
    registrations_.reset();
    if (slots_) munmap(slots_, kSlot * kSlots);
    slots_ = nullptr;
}

verbs::Registrations& RcPort::registrations() {
    if (registrations_) return *registrations_;
    const uint64_t most = config().verbs_registered;
    registrations_ = std::make_unique<verbs::Registrations>(port_, most > 0 ? memory_watch() : nullptr, most);
    return *registrations_;
}

RegisteredMemory* RcPort::register_memory(const void* memory, uint64_t bytes, bool stays, transport::RemoteKey& region) {
    auto loan = std::make_unique<RegisteredMemory>();
    loan->port = this;
    loan->registration = stays ? registrations().hold(memory, bytes) : registrations().use(memory, bytes);
    if (!loan->registration) return nullptr;
    region.word[0] = reinterpret_cast<uint64_t>(memory);
    region.word[1] = uint64_t{loan->registration->memory.remote} | uint64_t{place_} << 32;
    bind(region, kAnyQueue);
    loans_.push_back(loan.get());
    return loan.release();
}

void RcPort::deregister(RegisteredMemory& loan, bool at_once) {
    if (loan.port) {
        if (at_once) loan.port->registrations_->spoil(*loan.registration);
        loan.port->registrations_->done(*loan.registration);
    }
    loan.hook.unlink();
    delete &loan;
}

std::byte* RcPort::acquire_slot() {
    if (!slots_) {
        void* const pages = mmap(nullptr, kSlot * kSlots, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED) return nullptr;
        slots_registration_ = registrations().hold(pages, kSlot * kSlots);
        if (!slots_registration_) {
            munmap(pages, kSlot * kSlots);
            return nullptr;
        }
        slots_ = static_cast<std::byte*>(pages);
        for (uint32_t i = kSlots; i-- > 0;) free_slots_.push_back(slots_ + i * kSlot);
    }
    if (free_slots_.empty()) return nullptr;
    std::byte* const slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
}

}  // namespace starling::network
