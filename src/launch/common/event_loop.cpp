#include "launch/common/event_loop.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace starling::launch {

namespace {

constexpr std::chrono::milliseconds kRetryPause{50};  // until the kernel may have more room or descriptors

epoll_event event_of(int fd, uint32_t generation, uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = uint64_t{generation} << 32 | static_cast<uint32_t>(fd);
    return event;
}

}  // namespace

EventLoop::EventLoop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    if (epoll_ < 0) {
        std::fprintf(stderr, "starling: cannot create an event queue: %s%s\n", std::strerror(errno), limit_remedy(errno));
        _exit(1);
    }
}

EventLoop::~EventLoop() { close(epoll_); }

bool EventLoop::watch(int fd, uint32_t events, std::function<void(uint32_t)> handler) {
    const auto watch = std::make_shared<Watch>(Watch{++generation_, std::move(handler), events});
    if (!add(fd, *watch)) return false;
    watches_[fd] = watch;
    return true;
}

bool EventLoop::add(int fd, Watch& watch) {
    epoll_event event = event_of(fd, watch.generation, watch.events);
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0) return true;
    // A job that lost the watch of a rank's output or of a signal would wait for ever, so the loop waits until there is room.
    if (errno != ENOSPC && errno != ENOMEM) return false;
    if (!reported_want_of_room_) {
        std::fprintf(stderr, "starling: waiting until the kernel can watch one more descriptor: %s%s\n", std::strerror(errno),
                     errno == ENOSPC ? "; raise /proc/sys/fs/epoll/max_user_watches" : "");
    }
    reported_want_of_room_ = true;
    watch.retry = after_pause(fd, watch.generation, [this, fd](Watch& again) {
        again.retry = 0;
        add(fd, again);
    });
    return true;
}

EventLoop::TimerId EventLoop::after_pause(int fd, uint32_t generation, std::function<void(Watch&)> then) {
    return after(kRetryPause, [this, fd, generation, then = std::move(then)] {
        const auto found = watches_.find(fd);
        if (found != watches_.end() && found->second->generation == generation) then(*found->second);
    });
}

void EventLoop::change(int fd, uint32_t events) {
    const auto found = watches_.find(fd);
    if (found == watches_.end()) return;
    found->second->events = events;
    if (found->second->retry != 0) return;
    epoll_event event = event_of(fd, found->second->generation, events);
    epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

int EventLoop::accept(int listener) {
    for (;;) {
        const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) return fd;
        if (errno != EINTR && errno != ECONNABORTED) break;
    }
    const auto found = watches_.find(listener);
    if (errno == EAGAIN || found == watches_.end()) return -1;
    // epoll would report the listener as ready again at once, so that this process would use all of its core.
    change(listener, 0);
    after_pause(listener, found->second->generation, [this, listener](Watch&) { change(listener, EPOLLIN); });
    return -1;
}

void EventLoop::forget(int fd) {
    const auto found = watches_.find(fd);
    if (found == watches_.end()) return;
    if (found->second->retry != 0) {
        cancel(found->second->retry);
    } else {
        epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
    }
    watches_.erase(found);
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
