// One clock per process: the order of turns in a world that predicts times. The process with the least clock runs, and may lead the second
// by less than the least latency of the network. So nothing that another process does at an earlier time can still reach it: the order is
// conservative, and the same in every run. Through shared memory a process may see what another does up to one lead later.
//
// A process that polls without finding anything skips its next polls, up to a bound: they would take most of the real time. The skip ends
// at once, at the time of the next poll, if something happens to the process, or if a process of its host does anything but poll.
//
// Processes of a host share its cores. A process that is ready without a free core waits in a queue. It gets the core of the process that
// sleeps, yields or has used up its time slice, and pays a switch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

namespace starling::simulation {

struct Process;

struct ClockRules {
    uint64_t lead_ns = 0;    ///< how far the running process may lead the second
    uint32_t cores = 0;      ///< cores per host; 0: as many as processes
    uint64_t slice_ns = 0;   ///< time after which a process leaves its core to one that waits
    uint64_t switch_ns = 0;  ///< time that a core takes to switch between processes
    uint64_t wake_ns = 0;    ///< time from the wake-up of a process until it runs
    uint64_t skip_ns = 0;    ///< longest time for which a process skips polls; 0: it skips none
};

/// A process's part of the order.
struct ClockState {
    uint64_t now = 0;         ///< ns
    uint64_t entry = 0;       ///< number of the process's valid entry in the order; 0: none
    uint64_t core_since = 0;  ///< when the process got its core, ns
    bool has_core = false, waits = false;
    uint32_t idle_polls = 0;     ///< polls in sequence that found nothing
    uint64_t skipped_since = 0;  ///< begin of the polls that the process skips, ns; 0: it skips none
    uint64_t poll_ns = 0;        ///< time of each of these polls
};

class Clocks {
  public:
    explicit Clocks(const ClockRules& rules) : rules_(rules) {}

    /// Shortens the lead: processes begin to share a host.
    void limit_lead(uint64_t ns) { rules_.lead_ns = std::min(rules_.lead_ns, ns); }
    /// Makes a new or sleeping process ready to run at `now`.
    void ready(Process& process, uint64_t now);
    /// Returns the least clock of the processes that may run; UINT64_MAX: there is none.
    uint64_t least();
    /// Takes the process with the least clock out of the order; it runs until should_leave().
    Process* take();
    /// Returns whether the running process, whose clock is at `now`, must let another one run.
    bool should_leave(const Process& running, uint64_t now) const;
    /// Returns whether a process waits for a core of this process's host.
    bool has_waiting(const Process& process) const;
    /// Records that the running process leaves its turn. If it is not runnable any more, or yields, it gives up its core.
    void leave(Process& process, uint64_t now, bool runnable, bool yields);
    /// Records that the running process, at `now`, did something else than poll in vain.
    void act(Process& running, uint64_t now);
    /// Records that the running process, at `now`, has polled in vain, which takes `poll_ns`. Returns for how long it skips polls, ns.
    uint64_t idle_poll(Process& running, uint64_t now, uint64_t poll_ns);
    /// Ends the skip of a process, because something happened to it at `now`.
    void stir(Process& process, uint64_t now);
    /// Removes a process that does not run and was killed.
    void stop(Process& process, uint64_t now);

  private:
    /// Polls in sequence after which a process is idle.
    static constexpr uint32_t kIdlePolls = 16;

    struct Entry {
        uint64_t clock, number;
        uint32_t process_number;
        Process* process;
        bool operator>(const Entry& other) const {
            return clock != other.clock ? clock > other.clock : process_number > other.process_number;
        }
    };
    struct Host {
        uint32_t used = 0;    ///< cores in use
        uint32_t active = 0;  ///< processes with a core that do not poll in vain
        std::vector<Process*> processes;
        std::deque<Process*> waiting;
    };

    static bool is_idle(const Process& process);
    Host& host_of(const Process& process);
    void enter(Process& process);
    void give_core(Process& process);
    void release_core(Process& process, uint64_t now);

    ClockRules rules_;
    std::vector<Host> hosts_;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> order_;
    uint64_t numbers_ = 0;
    uint64_t horizon_ = UINT64_MAX;  ///< latest clock of the running process
};

}  // namespace starling::simulation
