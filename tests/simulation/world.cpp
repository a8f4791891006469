#include "world.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "prices.h"

namespace starling::simulation {

namespace {

World* the_world = nullptr;

/// Limit of switches: a wait that spins forever without advancing the clock would take real time forever.
constexpr uint64_t kMostSwitches = 30'000'000;
constexpr uint64_t kLongestLookNs = 100'000;
constexpr uint64_t kYieldNs = 500;
/// The library polls by itself at this interval, however it sleeps (progress/blocking_wait.cpp).
constexpr uint64_t kLapseNs = 99'000'000;

}  // namespace

World* world() { return the_world; }
Process* caller() {
    Process* const thread = the_world ? the_world->current() : nullptr;
    return thread ? thread->leader : nullptr;
}

bool Process::is_asleep() const {
    const auto rests = [](const Process* thread) { return thread->state == State::asleep || thread->gone(); };
    return state == State::asleep && std::all_of(threads.begin(), threads.end(), rests);
}

void fail_run(const char* format, ...) {
    char text[2000];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const Process* who = caller();
    if (who)
        std::fprintf(stderr, "job %u, rank %u, at %" PRIu64 " us, %s: %s\n", who->job, who->rank, the_world->now / 1000,
                     who->doing.c_str(), text);
    else
        std::fprintf(stderr, "%s\n", text);
    std::fflush(nullptr);
    the_world = nullptr;  // lets the real _exit run
    ::_exit(1);
}

World::World(uint64_t seed) : random(seed) {
    limit = now + 300'000'000'000;
    static constexpr uint64_t kPatience[] = {2, 8, 50, 1000};
    static constexpr uint64_t kLooks[] = {2, 4, 6};
    patience_ = random.one_of(kPatience);
    log_looks_ = random.one_of(kLooks);
    the_world = this;
}

World::~World() { the_world = nullptr; }

Process& World::add(uint32_t host, uint32_t rank, std::function<void(Process&)> run) {
    return add_to_job(0, host, rank, rank, std::move(run));
}

Process& World::add_to_job(uint32_t job, uint32_t host, uint32_t rank, uint32_t number, std::function<void(Process&)> run) {
    Process& process = prepare(std::move(run), nullptr);
    process.job = job;
    process.rank = rank;
    process.number = number;
    process.host = host;
    process.pid = 4'000'000 + static_cast<int>(number);
    begin(process);
    return process;
}

Process& World::add_thread(void* thread_pointer, std::function<void(Process&)> run) {
    Process& of = *current_->leader;
    Process& thread = prepare(std::move(run), thread_pointer);
    thread.job = of.job;
    thread.rank = of.rank;
    thread.number = of.number;
    thread.host = of.host;
    thread.pid = of.pid;
    thread.leader = &of;
    thread.doing = "a thread of the library";
    of.threads.push_back(&thread);
    begin(thread);
    return thread;
}

/// Makes a new process runnable.
void World::begin(Process& process) {
    if (clocks_)
        clocks_->ready(process, now);
    else
        runnable_.push_back(&process);
}

/// Adds a process without an identity.
Process& World::prepare(std::function<void(Process&)> run, void* thread_pointer) {
    Process& process = *processes_.emplace_back(std::make_unique<Process>());
    starts_.push_back(std::make_unique<Start>(Start{this, &process, std::move(run)}));
    process.fiber = std::make_unique<Fiber>(
        [](void* argument) {
            auto& start = *static_cast<Start*>(argument);
            start.run(*start.process);
            start.world->finish();
        },
        starts_.back().get(), thread_pointer);
    return process;
}

void World::end_now(Process& thread) {
    if (thread.gone()) return;
    thread.state = Process::State::dead;
    if (&thread == current_) return;
    if (clocks_)
        clocks_->stop(thread, now);
    else
        std::erase(runnable_, &thread);
}

Process& World::add_daemon(uint32_t host) {
    Process& process = *processes_.emplace_back(std::make_unique<Process>());
    process.host = host;
    process.rank = process.number = ~0u;
    process.pid = 4'100'000 + static_cast<int>(host);
    process.state = Process::State::over;
    return process;
}

Process* World::find(int pid) const {
    for (const auto& process : processes_)
        if (process->pid == pid) return process.get();
    return nullptr;
}

void World::at(uint64_t when, std::function<void()> what) {
    events_.push({std::max(when, now), numbers_++, std::move(what)});
    next_event_ = events_.top().when;
}

void World::at_daemon(uint64_t when, Process& daemon, std::function<void()> what) {
    at(when, [this, &daemon, what = std::move(what)] {
        Process* const before = std::exchange(current_, &daemon);
        what();
        current_ = before;
    });
}

void World::outside(const std::function<void()>& what) {
    Process* const before = std::exchange(current_, nullptr);
    what();
    current_ = before;
}

void World::run_events() {
    while (next_event_ <= now) {
        auto what = std::move(const_cast<Event&>(events_.top()).what);
        events_.pop();
        next_event_ = events_.empty() ? UINT64_MAX : events_.top().when;
        what();
    }
}

std::string World::run() {
    if (begin_turn()) current_->fiber->enter();
    return why_;
}

bool World::all_are_gone() const {
    return std::all_of(processes_.begin(), processes_.end(), [](const auto& p) { return p->gone(); });
}

bool World::begin_turn_by_clocks() {
    for (;;) {
        const uint64_t least = clocks_->least();
        if (least == UINT64_MAX && events_.empty()) return all_are_gone() ? false : end("no event will wake the sleepers");
        if (next_event_ <= least) {
            now = next_event_;
            if (now > limit) return end("time is up");
            run_events();
            continue;
        }
        now = least;
        if (now > limit) return end("time is up");
        ++switches_;
        current_ = clocks_->take();
        note("turn", current_->number, now);
        return true;
    }
}

bool World::begin_turn() {
    if (clocks_) return begin_turn_by_clocks();
    for (;;) {
        run_events();
        if (++switches_ > kMostSwitches) return end("the processes run without end");
        if (now > limit) return end("time is up");
        if (runnable_.empty()) {
            if (all_are_gone()) return false;
            if (events_.empty()) return end("no event will wake the sleepers");
            now = next_event_;
            continue;
        }
        current_ = runnable_[random.below(runnable_.size())];
        note("turn", current_->number, now);
        return true;
    }
}

bool World::end(const char* why) {
    why_ = who_hangs(why);
    return false;
}

// The process that leaves begins the next turn itself: one switch of stacks leads to the next process, and none if that is the same one.
void World::leave() {
    Process* const left = std::exchange(current_, nullptr);
    if (clocks_)
        clocks_->leave(*left, now, left->state == Process::State::runnable, std::exchange(yields_, false));
    else if (left->state != Process::State::runnable)
        std::erase(runnable_, left);
    if (!begin_turn()) return left->fiber->leave();
    if (current_ != left) left->fiber->leave_to(*current_->fiber);
}

// Time grows faster while processes only poll: otherwise two seconds of a peer's silence would take millions of polls. However many
// processes poll, those with work keep their share of time.
void World::look(uint64_t ns) {
    const uint64_t doublings = std::min<uint64_t>(looks_++ >> log_looks_, 20), grown = ns << doublings;
    const uint64_t share = runnable_.size();  // compared by a product, because most calls are far below the limit
    now += doublings == 0 || grown * share <= kLongestLookNs ? grown : std::max(ns, kLongestLookNs / share);
}

namespace {

/// Returns whether the call only begins an operation, so that it leaves what others have written to the process for a later call.
bool only_begins(const Process& process) {
    const std::string_view call = process.doing;
    return (call.starts_with("MPI_I") && call != "MPI_Iprobe" && call != "MPI_Improbe") || call.starts_with("MPI_Start");
}

/// Returns the price of what others have written into the memory of the process, which now looks there.
uint64_t take_owed(Process& process) {
    Process& payer = *process.leader;
    return payer.owed == 0 || only_begins(payer) ? 0 : std::exchange(payer.owed, 0);
}

}  // namespace

uint64_t World::take_besides() {
    Process& payer = *current_->leader;
    const uint64_t besides = payer.meter ? payer.meter->due() : 0;
    if (besides != 0) clocks_->act(*current_, now);
    return besides;
}

void World::advance(uint64_t ns) {
    now += ns + take_besides();
    leave_if_due();
}

void World::leave_if_due() {
    if (yields_ || next_event_ <= now || now > limit || clocks_->should_leave(*current_, now)) leave();
}

void World::pass_idly(uint64_t ns) {
    if (!clocks_ || !current_ || !current_->fiber) return pass(ns);
    const uint64_t owed = take_owed(*current_);
    if (owed != 0) clocks_->act(*current_, now);
    advance(ns + owed);
}

void World::pass_idle_poll(uint64_t ns, uint64_t period_ns) {
    if (!clocks_ || !current_ || !current_->fiber) return pass(ns);
    Process& me = *current_;
    const uint64_t owed = take_owed(me);
    if (owed != 0) clocks_->act(me, now);
    const uint64_t besides = owed + take_besides();
    const uint64_t skipped = besides == 0 ? clocks_->idle_poll(me, now, period_ns) : 0;
    now += besides + (skipped == 0 ? ns : skipped);
    leave_if_due();
    me.clock.skipped_since = 0;
}

void World::pass(uint64_t ns) {
    if (!current_ || !current_->fiber) return;
    if (clocks_) {
        clocks_->act(*current_, now);
        return advance(ns);
    }
    look(ns);
    if (next_event_ <= now) {
        run_events();
        if (current_->state != Process::State::runnable) return leave();
    }
    if (looks_ > uint64_t{1} << log_looks_ ? random.one_in(2) : random.one_in(patience_)) leave();
}

void World::yield() {
    if (!current_ || !current_->fiber) return;
    if (clocks_) {
        yields_ = clocks_->has_waiting(*current_);
        return advance(prices().yield);
    }
    look(kYieldNs);
    leave();
}

bool World::sleep_until(uint64_t when) {
    Process& me = *current_;
    me.state = Process::State::asleep;
    me.woken = me.rung = false;
    const uint64_t sleep = ++me.sleep;
    if (when != UINT64_MAX)
        at(when, [this, &me, sleep] {
            if (me.state == Process::State::asleep && me.sleep == sleep) make_runnable(me);
        });
    const uint64_t begin = now;
    leave();
    me.lapsed = !me.rung && now - begin >= kLapseNs ? switches_ : 0;
    me.futex = nullptr;
    me.futex_bits = ~0u;
    me.on_descriptors = false;
    return me.woken;
}

void World::compute(uint64_t ns) {
    Process& me = *current_;
    const uint64_t end = now + ns;
    while (now < end) {
        me.futex = &me.sleep;  // no process wakes this word, so the sleep lasts
        sleep_until(end);
    }
    me.lapsed = 0;  // a rank that computes waits for no ring
}

void World::finish() {
    current_->state = Process::State::over;
    for (Process* const thread : current_->threads) end_now(*thread);
    leave();
    std::abort();  // a process that has ended gets no further turn
}

void World::stay() {
    for (;;) {
        if (current_->state == Process::State::dead) leave();
        sleep_until(UINT64_MAX);
    }
}

void World::make_runnable(Process& process) {
    process.state = Process::State::runnable;
    if (clocks_) return clocks_->ready(process, now);
    // A process that falls asleep and is woken within one turn is still in the list of runnable processes.
    if (std::find(runnable_.begin(), runnable_.end(), &process) == runnable_.end()) runnable_.push_back(&process);
    happened();
}

// Between the end of its sleep and its turn a process still appears asleep, so it can still be rung.
void World::wake(Process& process) {
    process.rung = true;
    if (process.state != Process::State::asleep) return;
    process.woken = true;
    make_runnable(process);
}

void World::wake_descriptors(Process& process) {
    if (process.on_descriptors) wake(process);
    for (Process* const thread : process.threads)
        if (thread->on_descriptors) wake(*thread);
}

int World::wake_futex(const void* word, uint32_t bits) {
    int count = 0;
    for (const auto& process : processes_) {
        if (process->futex != word || (process->futex_bits & bits) == 0) continue;
        count += process->state == Process::State::asleep;
        wake(*process);
    }
    return count;
}

void World::kill(Process& process) {
    if (process.gone()) return;
    end_now(process);
    for (Process* const thread : process.threads) end_now(*thread);
    note("death", process.number);
}

void World::print_note(const char* what, uint64_t a, uint64_t b) const {
    std::fprintf(stderr, "%12" PRIu64 " %s %" PRIu64 " %" PRIu64 "\n", now, what, a, b);
}

std::string World::who_hangs(const char* why) const {
    std::string text = std::string("hangs, ") + why + ":";
    for (const auto& process : processes_) {
        if (process->gone()) continue;
        text += "\n  rank " + std::to_string(process->rank) +
                (process->job > 0 ? " of job " + std::to_string(process->job) : "") + " on host " +
                std::to_string(process->host) + (process->state == Process::State::asleep ? ", asleep, " : ", awake, ") +
                process->doing;
    }
    return text;
}

}  // namespace starling::simulation
