// The simulated world: a simulated clock, processes of which one runs at a time, and the list of future events.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "clocks.h"
#include "copy_times.h"
#include "fiber.h"
#include "random.h"

namespace starling::simulation {

/// Prices what a process has done without a simulated call, such as messages through shared memory.
class Meter {
  public:
    virtual ~Meter() = default;
    /// Returns the price (ns) of what was done since the last call.
    virtual uint64_t due() = 0;
    /// Returns the price (ns) of polling the process's rings.
    virtual uint64_t rings_price() = 0;
};

/// One process: a rank of a job, or the daemon of a host, which has no stack. Also a further thread of a rank, which has the same identity
/// and a stack of its own.
struct Process {
    enum class State : uint8_t { runnable, asleep, over, dead };

    uint32_t job = 0;     ///< number of the job; 0: the first one
    uint32_t rank = 0;    ///< rank in the job
    uint32_t number = 0;  ///< number among the ranks of all jobs; equal to the rank in the first job
    uint32_t host = 0;
    int pid = 0;  ///< process id: 22 bits, as real ones
    uint32_t cpu = 0;
    State state = State::runnable;
    Process* leader = this;         ///< the process of this thread: the one that owns descriptors and has the measurements
    std::vector<Process*> threads;  ///< further threads of the process
    std::unique_ptr<Fiber> fiber;   ///< stack of the process; null: a daemon
    const void* futex = nullptr;    ///< word on which the process sleeps
    uint32_t futex_bits = ~0u;      ///< a wake for other bits does not reach the sleeper (FUTEX_WAIT_BITSET)
    bool on_descriptors = false;    ///< whether the process is asleep until one of its descriptors has an event
    uint64_t sleep = 0;             ///< number of the current sleep, by which an alarm recognizes the sleep it was set for
    bool woken = false;             ///< whether a process, not the clock, has woken this process
    bool rung = false;              ///< whether a process has rung this process during its sleep
    uint64_t lapsed = 0;            ///< number of the turn after a sleep of over 99 ms without a ring; otherwise 0
    std::string doing;              ///< current operation, for reports of a hang
    bool parses_options = false;    ///< whether the process has begun to parse its command line
    uint64_t program = 0;           ///< where the process's program is loaded; 0: it has none
    CopyTimes copy_times;           ///< what the library measures of its copies
    std::string said;               ///< OpenSHMEM's last error message after a death
    ClockState clock;               ///< the process's own clock, in worlds with one clock per process
    uint64_t owed = 0;              ///< price (ns) of what others have written here, due when the process looks for it
    Meter* meter = nullptr;         ///< prices work without simulated calls; null: it costs nothing
    bool gone() const { return state == State::over || state == State::dead; }
    /// Returns whether all threads of the process are asleep.
    bool is_asleep() const;
};

/// One simulation. A real process runs at most one at a time: world().
class World {
  public:
    explicit World(uint64_t seed);
    ~World();

    Random random;
    uint64_t now = 1'000'000'000;  ///< ns
    uint64_t limit = 0;            ///< time limit in ns: a process that has not ended by then hangs
    bool trace = false;
    /// Handles the call of exit() or _exit() by a process, which must not continue; empty: such a call is an error.
    std::function<void(Process&, int code)> on_exit;

    /// Gives every process a clock of its own. Call it before processes are added.
    void use_clocks(const ClockRules& rules) { clocks_ = std::make_unique<Clocks>(rules); }
    void limit_lead(uint64_t ns) { clocks_->limit_lead(ns); }
    bool has_clocks() const { return clocks_ != nullptr; }
    /// Adds a process that executes `run` when the world runs.
    Process& add(uint32_t host, uint32_t rank, std::function<void(Process&)> run);
    /// Adds a process that is rank `rank` of a further job.
    Process& add_to_job(uint32_t job, uint32_t host, uint32_t rank, uint32_t number, std::function<void(Process&)> run);
    /// Adds a thread of the running process, with thread-local variables at this thread pointer.
    Process& add_thread(void* thread_pointer, std::function<void(Process&)> run);
    /// Adds a host's daemon; the simulator's actions for the daemon run under its identity.
    Process& add_daemon(uint32_t host);
    const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }
    /// Returns the running process or thread; null between turns.
    Process* current() const { return current_; }
    Process* find(int pid) const;

    /// Runs until all processes have ended or died. Returns an empty text, or the reason why they did not end.
    std::string run();
    /// Schedules an action. It runs between two turns or within a call of a process, so it must not switch.
    void at(uint64_t when, std::function<void()> what);
    /// Schedules an action under a daemon's identity.
    void at_daemon(uint64_t when, Process& daemon, std::function<void()> what);

    /// Executes an action outside all processes: its calls reach the real system.
    void outside(const std::function<void()>& what);

    // Functions that the running process calls:

    /// Lets a call take `ns`; another process may get a turn.
    void pass(uint64_t ns);
    /// Lets a call that only looks, and found nothing, take `ns`.
    void pass_idly(uint64_t ns);
    /// Lets the end of a poll that found nothing take `ns`. With clocks, the process may skip the next polls, each of `period_ns`.
    void pass_idle_poll(uint64_t ns, uint64_t period_ns);
    /// Records that something happened to a process, which its next poll would find.
    void stir(Process& process) {
        if (!clocks_) return;
        clocks_->stir(process, now);
        for (Process* const thread : process.threads) clocks_->stir(*thread, now);
    }
    /// Ends the process's turn; it stays runnable.
    void yield();
    /// Sleeps until woken or until `when`; returns whether it was woken.
    bool sleep_until(uint64_t when);
    /// Computes for `ns`; nothing wakes the process meanwhile.
    void compute(uint64_t ns);

    /// Ends the running process.
    [[noreturn]] void finish();
    /// Does nothing until the process is killed.
    [[noreturn]] void stay();
    /// Wakes the threads of the process that sleep on its descriptors.
    void wake_descriptors(Process& process);
    /// Wakes all processes that sleep on this word with one of these bits; returns their number.
    int wake_futex(const void* word, uint32_t bits = ~0u);
    /// Ends a process with all its threads immediately, whatever it is doing.
    void kill(Process& process);
    /// Records progress of the simulated program: the time that passes by polling alone grows slowly again.
    void happened() { looks_ = 0; }

    /// Adds an event to the run's hash, which is equal for equal seeds.
    void note(const char* what, uint64_t a = 0, uint64_t b = 0) {
        for (const char* c = what; *c; ++c) hash_ = (hash_ ^ static_cast<uint8_t>(*c)) * 0x100000001b3ull;
        hash_ = mix(hash_ ^ a) ^ mix(b + 0x9e3779b97f4a7c15ull);
        if (trace) print_note(what, a, b);
    }
    uint64_t hash() const { return hash_; }
    uint64_t switches() const { return switches_; }

  private:
    struct Event {
        uint64_t when, number;
        std::function<void()> what;
        bool operator>(const Event& other) const { return when != other.when ? when > other.when : number > other.number; }
    };
    struct Start {
        World* world;
        Process* process;
        std::function<void(Process&)> run;
    };
    /// Runs the events that are due and draws the process of the next turn; returns false at the end of the run, for the reason in why_.
    bool begin_turn();
    Process& prepare(std::function<void(Process&)> run, void* thread_pointer);
    void end_now(Process& thread);
    bool begin_turn_by_clocks();
    /// Advances the running process's own clock, and ends its turn if another process or an event is due.
    void advance(uint64_t ns);
    void leave_if_due();
    /// Returns the price (ns) of work that has none of its own calls: of other processes, and through shared memory.
    uint64_t take_besides();
    bool all_are_gone() const;
    void begin(Process& process);
    bool end(const char* why);
    void print_note(const char* what, uint64_t a, uint64_t b) const;
    void run_events();
    void look(uint64_t ns);
    void make_runnable(Process& process);
    void wake(Process& process);
    void leave();
    std::string who_hangs(const char* why) const;

    std::vector<std::unique_ptr<Process>> processes_;
    std::vector<std::unique_ptr<Start>> starts_;
    std::vector<Process*> runnable_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    uint64_t next_event_ = UINT64_MAX, numbers_ = 0;
    Process* current_ = nullptr;
    std::unique_ptr<Clocks> clocks_;  ///< null: all processes share one clock, and turns are random
    bool yields_ = false;             ///< whether the process that leaves lets others of its host run first
    uint64_t looks_ = 0;
    uint64_t patience_;  ///< average number of calls before another process gets a turn
    /// logarithm of the number of polls without other events after which a poll takes twice as much time: a process that only polls the
    /// clock is waiting
    uint64_t log_looks_;
    uint64_t hash_ = 0xcbf29ce484222325ull, switches_ = 0;
    std::string why_;  ///< why the run has ended too early; empty: it has not
};

/// Returns the simulated world; null: none, and the real system is used.
World* world();
/// Returns the simulated process that makes this call, whichever of its threads; null if it is not one.
Process* caller();

/// Reports an error of the simulated program or of the simulator, with the seed, and ends the run.
[[noreturn, gnu::format(printf, 1, 2)]] void fail_run(const char* format, ...);

}  // namespace starling::simulation
