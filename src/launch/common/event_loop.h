// The launcher's event loop: epoll and timers only. Asio would do the same, but it costs start-up time (mpiexec must be running its first
// rank after about a millisecond). It also hides its descriptors, and a process that forks must know each of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>

#include "base/counter_start.h"

namespace starling::launch {

/// Event loop for a single thread. Handlers may add and remove descriptors and timers, including their own.
class EventLoop {
  public:
    using Clock = std::chrono::steady_clock;
    using TimerId = uint64_t;

    EventLoop();
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;
    ~EventLoop();

    /// Calls `handler(ready events)` while `fd` is ready for `events` (EPOLLIN, ...). Returns false if the
    /// kernel can't watch this kind of descriptor (a regular file: always ready). Where the kernel has no
    /// room for a further watch (ENOSPC, ENOMEM), the loop tries again every 50 ms and says so on stderr
    /// once. The loop does not own `fd`.
    bool watch(int fd, uint32_t events, std::function<void(uint32_t)> handler);
    void change(int fd, uint32_t events);
    /// Accepts a connection from `listener`, which this loop watches for EPOLLIN. Returns -1 if there is
    /// none. Where the kernel refuses one (EMFILE, ...), the loop reports `listener` as ready only after a
    /// pause, until other descriptors may have been closed.
    int accept(int listener);
    /// Stops watching `fd`. Must be called before `fd` is closed.
    void forget(int fd);

    TimerId after(std::chrono::milliseconds delay, std::function<void()> handler);
    void cancel(TimerId id);

    /// Runs until stop() is called; returns the result that was passed to stop().
    int run();
    void stop(int result);
    bool stopped() const { return stopped_; }

    /// Called before the handlers of each turn. `interrupted`: a stop of this process, such as that by a debugger, has ended the wait; signals
    /// do so as well, unless they are blocked.
    std::function<void(bool interrupted)> on_turn;

  private:
    struct Watch {
        uint32_t generation;
        std::function<void(uint32_t)> handler;
        uint32_t events;
        TimerId retry = 0;  // the timer of the next try; 0 once the kernel watches the descriptor
    };
    struct Timer {
        TimerId id;
        std::function<void()> handler;
    };
    bool add(int fd, Watch& watch);
    /// Calls `then` after a pause, unless the watch of this generation was removed meanwhile.
    TimerId after_pause(int fd, uint32_t generation, std::function<void(Watch&)> then);
    int milliseconds_to_next_timer() const;
    void run_timers();

    int epoll_ = -1;
    uint32_t generation_ = kCounterStart;
    std::unordered_map<int, std::shared_ptr<Watch>> watches_;
    std::multimap<Clock::time_point, Timer> timers_;
    TimerId last_timer_ = 0;
    bool reported_want_of_room_ = false;
    bool stopped_ = false;
    int result_ = 0;
};

}  // namespace starling::launch
