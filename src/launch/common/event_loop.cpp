#include "launch/common/event_loop.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace starling::launch {

EventLoop::EventLoop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    if (epoll_ < 0) {
        const char* remedy = errno == EMFILE || errno == ENFILE ? "; raise `ulimit -n`" : "";
        std::fprintf(stderr, "starling: cannot create an event queue: %s%s\n", std::strerror(errno), remedy);
        _exit(1);
    }
}

EventLoop::~EventLoop() { close(epoll_); }

bool EventLoop::watch(int fd, uint32_t events, std::function<void(uint32_t)> handler) {
    const uint32_t generation = ++generation_;
    epoll_event event{};
    event.events = events;
    event.data.u64 = uint64_t{generation} << 32 | static_cast<uint32_t>(fd);
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) return false;
    watches_[fd] = std::make_shared<Watch>(Watch{generation, std::move(handler)});
    return true;
}

void EventLoop::change(int fd, uint32_t events) {
    const auto found = watches_.find(fd);
    if (found == watches_.end()) return;
    epoll_event event{};
    event.events = events;
    event.data.u64 = uint64_t{found->second->generation} << 32 | static_cast<uint32_t>(fd);
    epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::forget(int fd) {
    if (watches_.erase(fd) > 0) epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
}

EventLoop::TimerId EventLoop::after(std::chrono::milliseconds delay, std::function<void()> handler) {
    const TimerId id = ++last_timer_;
    timers_.emplace(Clock::now() + delay, Timer{id, std::move(handler)});
    return id;
}

void EventLoop::cancel(TimerId id) {
    const auto found = std::find_if(timers_.begin(), timers_.end(), [id](const auto& t) { return t.second.id == id; });
    if (found != timers_.end()) timers_.erase(found);
}

int EventLoop::milliseconds_to_next_timer() const {
    if (timers_.empty()) return -1;
    const auto left = timers_.begin()->first - Clock::now();
    // Round up: waking a fraction of a millisecond early would spin until the timer is due.
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    return static_cast<int>(std::clamp<int64_t>(ms, 0, 1 << 30));
}

void EventLoop::run_timers() {
    const auto now = Clock::now();
    while (!stopped_ && !timers_.empty() && timers_.begin()->first <= now) {
        const auto handler = std::move(timers_.begin()->second.handler);
        timers_.erase(timers_.begin());
        handler();
    }
}

int EventLoop::run() {
    while (!stopped_) {
        epoll_event events[64];
        const int n = epoll_wait(epoll_, events, 64, milliseconds_to_next_timer());
        if (n < 0 && errno != EINTR) panic("epoll_wait: %s", std::strerror(errno));
        if (on_turn) on_turn(n < 0);
        for (int i = 0; i < n && !stopped_; ++i) {
            const auto found = watches_.find(static_cast<int>(events[i].data.u64 & 0xffffffffu));
            // Skip an event whose descriptor was closed by another handler of this batch: its number may already belong to a new
            // descriptor.
            if (found == watches_.end() || found->second->generation != events[i].data.u64 >> 32) continue;
            const auto watch = found->second;
            watch->handler(events[i].events);
        }
        run_timers();
    }
    return result_;
}

void EventLoop::stop(int result) {
    if (stopped_) return;
    stopped_ = true;
    result_ = result;
}

}  // namespace starling::launch
