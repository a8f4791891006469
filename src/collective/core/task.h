// The coroutine type of collective operations: starts lazily and returns an MPI error class.
#pragma once

#include <coroutine>
#include <cstddef>
#include <utility>

#include "base/error.h"
#include "base/kept_memory.h"
#include "collective/core/frame_pool.h"
#include "progress/request.h"

namespace starling::collective {

/// One running collective algorithm, or a step of one. A task does nothing until another task awaits it or it is passed to start() or run()
/// of collective/collective_request.h. Awaiting (`int error = co_await step(...)`) transfers control without growing the stack. A task owns
/// its frame. Referenced parameters must outlive it. Runs only under the library's lock. A task may also be an already completed operation:
/// a result without a frame.
class [[nodiscard]] Task {
  public:
    struct promise_type;
    using TaskHandle = std::coroutine_handle<promise_type>;

    struct FinalAwaiter {
        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(TaskHandle handle) const noexcept {
            promise_type& promise = handle.promise();
            if (promise.continuation) return promise.continuation;
            if (promise.request) {
                promise.request->outcome.error = promise.result;
                if (promise.result != MPI_SUCCESS) [[unlikely]]
                    progress::save_failure(*promise.request);
                promise.request->complete();
            }
            return std::noop_coroutine();
        }
        void await_resume() const noexcept {}
    };

    struct promise_type {
        int result = MPI_SUCCESS;
        std::coroutine_handle<> continuation;  ///< coroutine that awaits this task; null: none
        progress::Request* request = nullptr;  ///< request of a started task, completed when the task ends

        static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
        static void operator delete(void* frame, std::size_t bytes) noexcept { release_frame(frame, bytes); }

        Task get_return_object() { return Task(TaskHandle::from_promise(*this)); }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        FinalAwaiter final_suspend() const noexcept { return {}; }
        void return_value(int error) { result = error; }
        // Handles std::bad_alloc, the only exception that can get here: the reserve did not suffice, and other participants wait for the
        // messages that this task would still send and receive.
        void unhandled_exception() noexcept { KeptMemory::end(); }
    };

    Task() = default;
    /// Returns a completed task with that result.
    static Task completed(int error) {
        Task task;
        task.result_ = error;
        return task;
    }
    Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)), result_(other.result_) {}
    Task& operator=(Task&& other) noexcept {
        if (this != &other) {
            if (handle_) handle_.destroy();
            handle_ = std::exchange(other.handle_, nullptr);
            result_ = other.result_;
        }
        return *this;
    }
    ~Task() {
        if (handle_) handle_.destroy();
    }

    /// Returns the frame, for starting the task; null if the task is complete already.
    TaskHandle handle() const { return handle_; }
    /// Returns the result of a task that was complete from the start.
    int result() const { return result_; }

    struct Awaiter {
        TaskHandle handle;
        int result;
        bool await_ready() const noexcept { return !handle; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) const noexcept {
            handle.promise().continuation = awaiting;
            return handle;
        }
        int await_resume() const noexcept { return handle ? handle.promise().result : result; }
    };
    Awaiter operator co_await() const noexcept { return Awaiter{handle_, result_}; }

  private:
    explicit Task(TaskHandle handle) : handle_(handle) {}
    TaskHandle handle_;
    int result_ = MPI_SUCCESS;
};

}  // namespace starling::collective
