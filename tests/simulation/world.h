// The simulated world: a clock that nobody waits for, processes of which one runs at a time, and what is to happen when.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "fiber.h"
#include "random.h"

namespace starling::simulation {

/// One process: a rank of the job, or what stands for the daemon of a host, which has no stack of its own.
struct Process {
    enum class State : uint8_t { runnable, asleep, over, dead };

    uint32_t rank = 0;
    uint32_t host = 0;
    int pid = 0;  ///< of 22 bits, as real ones
    uint32_t cpu = 0;
    State state = State::runnable;
    std::unique_ptr<Fiber> fiber;  ///< none: a daemon
    const void* futex = nullptr;   ///< the word that it sleeps on
    bool on_descriptors = false;   ///< it sleeps until one of its descriptors has something
    uint64_t sleep = 0;            ///< counts its sleeps, so that an alarm knows which it was for
    bool woken = false;            ///< by somebody, not by the clock
    bool rung = false;             ///< somebody would have woken it, had the clock not been first
    uint64_t lapsed = 0;           ///< the turn that began since it had slept for long and nobody had rung; 0: another
    std::string doing;             ///< for whom it hangs
    std::string said;              ///< of OpenSHMEM's complaints the last one, once somebody has died
    bool gone() const { return state == State::over || state == State::dead; }
};

/// One simulation. There is one at a time in a process: world().
class World {
  public:
    explicit World(uint64_t seed);
    ~World();

    Random random;
    uint64_t now = 1'000'000'000;  ///< ns
    uint64_t limit = 0;            ///< ns: who is not done by then hangs
    bool trace = false;

    /// `run` is the process; it begins when the world runs.
    Process& add(uint32_t host, uint32_t rank, std::function<void(Process&)> run);
    /// What a host's daemon does is done in its name.
    Process& add_daemon(uint32_t host);
    const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }
    /// The process that runs; null between them.
    Process* current() const { return current_; }
    Process* find(int pid) const;

    /// Until all processes are over or dead. Empty, or why that did not come to be.
    std::string run();
    /// At that time, between two processes or within a call of one: must not switch.
    void at(uint64_t when, std::function<void()> what);
    /// The same as if a daemon did it.
    void at_daemon(uint64_t when, Process& daemon, std::function<void()> what);

    // For the process that runs:

    /// A call takes its time, and another process may have its turn.
    void pass(uint64_t ns);
    /// Gives the others their turn.
    void yield();
    /// Until somebody wakes it, or that time. Whether it was woken.
    bool sleep_until(uint64_t when);
    /// It computes, and nothing wakes it.
    void compute(uint64_t ns);

    /// It has nothing to do any more, until it is killed.
    [[noreturn]] void stay();
    /// If it sleeps on its descriptors: one has something.
    void wake_descriptors(Process& process);
    /// Wakes who sleeps on this word; how many.
    int wake_futex(const void* word);
    /// Ends a process here and now, wherever it is.
    void kill(Process& process);
    /// Something came about: time that passes by looking alone goes slowly again.
    void happened() { looks_ = 0; }

    /// What the run was: equal for equal seeds.
    void note(const char* what, uint64_t a = 0, uint64_t b = 0);
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
    uint64_t looks_ = 0;
    uint64_t patience_;  ///< calls of one process, on average, before another has its turn
    /// Who looks at the clock again and again while nothing happens waits: after so many looks they take twice as long.
    uint64_t looks_per_doubling_;
    uint64_t hash_ = 0xcbf29ce484222325ull, switches_ = 0;
};

/// The world that is simulated; null: none, and the system is the real one.
World* world();
/// The process whose call this is; null if it is none of the world's.
Process* caller();

/// The simulated program, or the simulator, has found something wrong: tells it with the seed and ends the run.
[[noreturn, gnu::format(printf, 1, 2)]] void fail_run(const char* format, ...);

}  // namespace starling::simulation
