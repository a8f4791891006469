#include "clocks.h"

#include <algorithm>

#include "world.h"

namespace starling::simulation {

Clocks::Host& Clocks::host_of(const Process& process) {
    if (hosts_.size() <= process.host) hosts_.resize(process.host + 1);
    return hosts_[process.host];
}

void Clocks::enter(Process& process) {
    process.clock.entry = ++numbers_;
    order_.push({process.clock.now, numbers_, process.number, &process});
    horizon_ = std::min(horizon_, process.clock.now + rules_.lead_ns);
}

void Clocks::give_core(Process& process) {
    ++host_of(process).active;
    process.clock.idle_polls = 0;
    process.clock.has_core = true;
    process.clock.waits = false;
    process.clock.core_since = process.clock.now;
    enter(process);
}

void Clocks::ready(Process& process, uint64_t now) {
    Host& host = host_of(process);
    const bool is_new = process.clock.now == 0;
    if (is_new) host.processes.push_back(&process);
    process.clock.now = std::max(process.clock.now, now) + (is_new ? 0 : rules_.wake_ns);
    if (rules_.cores == 0 || host.used < rules_.cores) {
        ++host.used;
        return give_core(process);
    }
    process.clock.waits = true;
    host.waiting.push_back(&process);
}

uint64_t Clocks::least() {
    while (!order_.empty() && order_.top().process->clock.entry != order_.top().number) order_.pop();
    return order_.empty() ? UINT64_MAX : order_.top().clock;
}

Process* Clocks::take() {
    if (least() == UINT64_MAX) return nullptr;
    Process* const first = order_.top().process;
    order_.pop();
    first->clock.entry = 0;
    first->clock.skipped_since = 0;
    const uint64_t second = least();
    horizon_ = second == UINT64_MAX ? UINT64_MAX : second + rules_.lead_ns;
    return first;
}

bool Clocks::has_waiting(const Process& process) const {
    return process.host < hosts_.size() && !hosts_[process.host].waiting.empty();
}

bool Clocks::should_leave(const Process& running, uint64_t now) const {
    if (now > horizon_) return true;
    return has_waiting(running) && now - running.clock.core_since >= rules_.slice_ns;
}

void Clocks::leave(Process& process, uint64_t now, bool runnable, bool yields) {
    process.clock.now = now;
    const bool slice_is_over = has_waiting(process) && now - process.clock.core_since >= rules_.slice_ns;
    if (runnable && !yields && !slice_is_over) return enter(process);
    if (runnable) {
        process.clock.waits = true;
        host_of(process).waiting.push_back(&process);
    }
    release_core(process, now);
}

bool Clocks::is_idle(const Process& process) { return process.clock.idle_polls >= kIdlePolls; }

void Clocks::act(Process& running, uint64_t now) {
    if (running.clock.idle_polls == 0) return;
    Host& host = host_of(running);
    if (is_idle(running)) {
        ++host.active;
        for (Process* const each : host.processes) stir(*each, now);
    }
    running.clock.idle_polls = 0;
}

uint64_t Clocks::idle_poll(Process& running, uint64_t now, uint64_t poll_ns) {
    Host& host = host_of(running);
    if (!is_idle(running) && ++running.clock.idle_polls == kIdlePolls) --host.active;
    if (host.active > 0 || !host.waiting.empty() || !is_idle(running) || poll_ns == 0 || rules_.skip_ns < poll_ns) return 0;
    running.clock.skipped_since = now;
    running.clock.poll_ns = poll_ns;
    return rules_.skip_ns / poll_ns * poll_ns;
}

void Clocks::stir(Process& process, uint64_t now) {
    ClockState& clock = process.clock;
    if (clock.skipped_since == 0 || clock.entry == 0) return;
    const uint64_t passed = now > clock.skipped_since ? now - clock.skipped_since : 1;
    const uint64_t next_poll = clock.skipped_since + (passed + clock.poll_ns - 1) / clock.poll_ns * clock.poll_ns;
    clock.skipped_since = 0;
    if (next_poll >= clock.now) return;
    clock.now = next_poll;
    enter(process);
}

void Clocks::release_core(Process& process, uint64_t now) {
    process.clock.has_core = false;
    Host& host = host_of(process);
    if (!is_idle(process)) --host.active;
    if (host.waiting.empty()) {
        --host.used;
        return;
    }
    Process& next = *host.waiting.front();
    host.waiting.pop_front();
    next.clock.now = std::max(next.clock.now, now) + rules_.switch_ns;
    give_core(next);
}

void Clocks::stop(Process& process, uint64_t now) {
    process.clock.entry = 0;
    process.clock.skipped_since = 0;
    if (process.clock.waits) std::erase(host_of(process).waiting, &process);
    process.clock.waits = false;
    if (process.clock.has_core) release_core(process, now);
}

}  // namespace starling::simulation
