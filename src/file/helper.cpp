#include "file/helper.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

#include "base/lock.h"
#include "base/mutex.h"
#include "base/state.h"
#include "base/thread.h"
#include "file/system_call.h"
#include "progress/engine.h"

namespace starling::file {

namespace {

using JobList = List<HelperJob, &HelperJob::hook>;

/// The helper thread's two lists of jobs. The process adds jobs to `waiting`; the thread moves them to `finished` when they are done.
struct HelperQueue {
    Mutex mutex;
    Condition changed;
    JobList waiting, finished;
    bool stopping = false;
};

STARLING_STATE Lazy<HelperQueue> queue_storage;
HelperQueue& queue() { return queue_storage.get(); }
/// Whether `finished` has a job; polls check it without the mutex.
STARLING_STATE std::atomic<bool> any_finished{false};
STARLING_STATE bool running = false;  ///< whether the thread runs
STARLING_STATE pthread_t thread;
STARLING_STATE pid_t starter = 0;  ///< process id of the process whose thread runs

/// Waits for the next job; returns null when there is none left and the thread must end.
HelperJob* next_job(HelperQueue& jobs) {
    MutexGuard guard(jobs.mutex);
    while (jobs.waiting.empty() && !jobs.stopping) jobs.changed.wait(guard);
    return jobs.waiting.pop_front();
}

void finish(HelperQueue& jobs, HelperJob& job) {
    {
        const MutexGuard guard(jobs.mutex);
        jobs.finished.push_back(&job);
        any_finished.store(true, std::memory_order_release);
    }
    progress::ring_self();
}

void* run_jobs(void*) {
    HelperQueue& jobs = queue();
    while (HelperJob* const job = next_job(jobs)) {
        job->moved = job->work(*job);
        finish(jobs, *job);
    }
    return nullptr;
}

HelperJob* take_finished(HelperQueue& jobs) {
    const MutexGuard guard(jobs.mutex);
    HelperJob* const job = jobs.finished.pop_front();
    if (!job) any_finished.store(false, std::memory_order_relaxed);
    return job;
}

/// Completes the jobs that the thread has done. A completion schedules coroutines; it does not run them.
bool poll_helper() {
    if (!any_finished.load(std::memory_order_acquire)) return false;
    HelperQueue& jobs = queue();
    bool any = false;
    while (HelperJob* const job = take_finished(jobs)) {
        job->complete();
        any = true;
    }
    return any;
}

void stop_helper() {
    if (!running || starter != getpid()) return;
    {
        const MutexGuard guard(queue().mutex);
        queue().stopping = true;
    }
    queue().changed.signal();
    step_out();
    pthread_join(thread, nullptr);
    step_in();
    queue().stopping = false;
    running = false;
    poll_helper();
}

/// Starts the thread unless it runs. A child of fork() has no such thread, and may find the mutex locked for ever.
bool thread_runs() {
    if (running) return starter == getpid();
    running = start_thread(thread, run_jobs, nullptr) == 0;
    if (!running) return false;
    starter = getpid();
    progress::add_poller(poll_helper);
    progress::add_stopper(stop_helper);
    return true;
}

}  // namespace

void do_now(HelperJob& job) {
    job.moved = system_call([&job] { return job.work(job); });
    job.complete();
}

void start(HelperJob& job) {
    if (!thread_runs()) return do_now(job);
    HelperQueue& jobs = queue();
    {
        const MutexGuard guard(jobs.mutex);
        jobs.waiting.push_back(&job);
    }
    jobs.changed.signal();
}

}  // namespace starling::file
