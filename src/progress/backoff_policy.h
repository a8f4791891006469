// The backoff policy: when a wait spins, yields or sleeps. Pure functions of their input, so a test simulates days of waiting without a
// clock.
#pragma once

#include <cstdint>

namespace starling::progress {

/// The state of the cores on which this process waits; kept from wait to wait.
///
/// Two kinds of other threads may want such a core. *Neighbours* are awake processes of known jobs on the same core: the awaited event may
/// depend on one of them, and a yield lets it run. *Unknown threads* are all others. A yield also hands the core to an unknown thread, for
/// a whole time slice and for no gain. So once slices were lost, the core counts as contested and waits do not yield for a while. A single
/// loss is no sign: a virtual machine's core may stand still for as long. When the kernel moves this process, unknown threads stay on their
/// core, so this state is kept per core.
class CoreWatch {
  public:
    /// Shortest time off the core that counts as a lost slice, ns: at least one time slice of the scheduler, and longer than a round of
    /// yields among waiting neighbours.
    static constexpr uint64_t kSliceNs = 1'000'000;
    /// Two lost slices with at most kBetweenLossesNs between them make a core contested, for kFirstContestNs. This time doubles, up to
    /// kLongestContestNs, if a slice is lost again soon afterwards.
    static constexpr uint64_t kBetweenLossesNs = 30'000'000;
    static constexpr uint64_t kFirstContestNs = 20'000'000, kLongestContestNs = 1'280'000'000;
    /// After kTurnsBeforeMove yields in a row in which a neighbour ran, this process looks for an emptier core. It tries again after
    /// kFirstRestNs. This time doubles, up to kLongestRestNs, while the process has a neighbour and finds no emptier core.
    static constexpr uint32_t kTurnsBeforeMove = 32;
    static constexpr uint64_t kFirstRestNs = 5'000'000, kLongestRestNs = 1'280'000'000;

    /// After kVainYields yields in a row in which no other thread ran, although the machine is short of cores, waits sleep instead of
    /// yielding, for kVainNs.
    static constexpr uint32_t kVainYields = 8;
    static constexpr uint64_t kVainNs = 100'000'000;
    /// How long the machine counts as short of cores after a check has found it so.
    static constexpr uint64_t kSuspicionNs = 20'000'000;

    /// Losses within this time after begin() are ignored. The job is starting, and unknown processes on the core are most likely its other
    /// ranks on their way to MPI_Init.
    static constexpr uint64_t kStartNs = 50'000'000;
    void begin(uint64_t now) { begun_ = now + kStartNs; }

    /// Records that this thread was off the core for `ns` until `now`, through a yield or a preemption.
    void lost(uint64_t ns, uint64_t now);
    /// Records a yield that took `ns` and ended at `now`.
    void yielded(uint64_t ns, uint64_t now);
    /// Records the current core, and whether a neighbour is awake on it.
    void see(uint32_t cpu, bool neighbour, uint64_t now);
    /// Records a neighbour's finding that unknown threads want this core; this process then need not lose slices to find out. The record
    /// stays valid for kFirstContestNs, since that neighbour may be asleep at the next check.
    void note_foreign_load(uint64_t now) { contest_->hearsay_until = now + kFirstContestNs; }
    /// Records that the machine is short of cores: this core may have a neighbour that no visible table lists. The record stays valid for a
    /// while, because short waits do not check.
    void suspect_neighbour(uint64_t now) { suspicion_until_ = now + kSuspicionNs; }
    bool suspects_neighbour(uint64_t now) const { return now < suspicion_until_; }
    /// Records whether a process that no visible table lists can cause the awaited events: a peer on another host, which may be another
    /// container of this machine. Without such peers, yields that let no thread run refute the suspicion.
    void note_unlisted_peers(bool exist) { unlisted_peers_ = exist; }
    bool is_on(uint32_t cpu) const { return contest_->cpu == cpu; }
    /// Records a sleep that leaves the core to a neighbour, because a yield would hand it to unknown threads.
    void note_yield() { ++shared_; }
    /// Returns whether this process should search for an emptier core now; the caller then calls moved().
    bool should_move(uint64_t now);
    /// Records whether an emptier core was found. The kernel may move this process back, because it balances runnable threads and does not know
    /// which one waits for which.
    void moved(bool found, uint64_t now);

    /// Returns whether unknown threads, or neighbours that compute, want this core, so that a yield costs a slice.
    bool contested(uint64_t now) const { return now < contest_->until || now < contest_->hearsay_until; }
    /// Returns whether neighbours should be informed that unknown threads want this core. True only if this process found it out itself,
    /// more than once in a row. A first contest may be a false alarm, for example while neighbours touch much memory for the first time.
    bool is_sure_of_foreign_load(uint64_t now) const { return now < contest_->until && contest_->length > kFirstContestNs; }
    /// Returns whether the process that a wait depends on may need this very core.
    bool crowded() const { return (crowded_ && neighbour_) || suspected_; }
    /// Returns whether yields have no effect although threads wait for a core of this machine. The kernel then divides the core between
    /// groups of processes (sessions, containers), and a yield only affects the caller's group.
    bool yields_are_vain() const { return vain_ >= kVainYields; }
    /// Returns whether waits should treat this core as one with a neighbour that no visible table lists.
    bool may_have_unlisted_neighbour(uint64_t now) const {
        return suspects_neighbour(now) && (unlisted_peers_ || !yields_are_vain());
    }

  private:
    /// What is known of other threads that want one core. A contest is the time for which they are assumed to want it.
    struct Contest {
        uint32_t cpu = ~0u;
        uint64_t last_loss = 0;  ///< end of the last lost slice
        uint64_t until = 0;
        uint64_t hearsay_until = 0;
        uint64_t length = 0;  ///< length of the last contest, ns
    };
    static constexpr uint32_t kCoresKnown = 4;
    Contest contests_[kCoresKnown];
    Contest* contest_ = contests_;  ///< contest for the current core
    uint32_t next_forgotten_ = 0;
    uint32_t vain_ = 0;      ///< number of consecutive yields in which no other thread ran while cores were short
    uint64_t vain_at_ = 0;   ///< time of the last yield
    uint32_t lateness_ = 0;  ///< history of yields, one bit each; 1: another thread ran meanwhile
    bool crowded_ = false, suspected_ = false, unlisted_peers_ = false;
    bool neighbour_ = false;
    /// Number of consecutive yields in which a neighbour ran, including sleeps that left the core to one.
    uint32_t shared_ = 0;
    uint64_t suspicion_until_ = 0;
    uint64_t begun_ = 0;       ///< time from which losses count
    uint64_t rest_until_ = 0;  ///< time before which this process does not search for an emptier core
    uint64_t rest_ = 0;
};

/// The backoff policy for one wait.
class Waiting {
  public:
    enum class Act : uint8_t {
        spin,      ///< poll again
        yield,     ///< let a neighbour run; the caller then calls yielded()
        move,      ///< move to a core with fewer known processes; then call moved()
        announce,  ///< announce the sleep to peers, then poll once more
        sleep,     ///< sleep, then call slept()
    };
    /// Parameters of the policy; they may change from step to step.
    struct BackoffSettings {
        bool may_sleep = true;
        uint64_t spin_ns = 0;         ///< time to spin before a sleep, ns, if no other thread wants the core
        bool unlisted_peers = false;  ///< whether a process of another host can cause the awaited event
    };
    /// Observations about the core and the machine at one moment.
    struct CoreObservation {
        uint64_t now = 0;             ///< ns
        bool neighbour = false;       ///< whether a known process is awake on this core
        uint32_t cpu = 0;             ///< number of this core
        bool contested = false;       ///< whether a neighbour has found that unknown threads want this core
        bool short_of_cores = false;  ///< whether a thread of this machine waits for a core; set only if should_check_cores()
    };

    /// kPollsPerLook: polls between two checks of the core's state. kPollsCrowded: polls before the first check on a crowded core.
    /// kDearPollsCrowded: the latter if each poll is a system call.
    static constexpr uint32_t kPollsPerLook = 16, kPollsCrowded = 20, kDearPollsCrowded = 3;
    /// Factor on the polls before the first check of the core's state if the awaited process must be woken first. Such a process replies
    /// within 100 µs unless it is busy.
    static constexpr uint32_t kPatience = 3;
    /// Spin time while unknown threads want the core, ns. The awaited process may have lost its own core for a slice. The less this process
    /// spins meanwhile, the sooner this process gets its core back.
    static constexpr uint64_t kContestedSpinNs = 50'000;
    /// Interval between two checks for a shortage of cores, and between the start of a wait and its first check, ns.
    static constexpr uint64_t kAskNs = 50'000;

    /// `later`: the awaited process must be woken and needs a core. The wait then spins for as long as waking takes, and sleeps without
    /// yielding.
    Waiting(CoreWatch& core, bool later) : core_(core), later_(later) {}

    /// Counts a poll that found nothing. Returns whether it is time to check the core's state. `polls_alone`: polls before the first check
    /// if no other thread wants the core. `dear`: a poll is a system call and takes as long as several polls of memory.
    bool is_time_to_check(uint32_t polls_alone, bool dear = false) {
        if (announced_) return true;
        ++polls_;
        if (core_.crowded()) return polls_ >= (dear ? kDearPollsCrowded : kPollsCrowded);
        return later_ ? polls_ >= polls_alone * kPatience : polls_ >= polls_alone && polls_ % kPollsPerLook == 0;
    }
    Act next(const CoreObservation& look, const BackoffSettings& terms);
    /// Returns whether the next check of the core's state should also determine if the machine is short of cores.
    bool should_check_cores(uint64_t now) const {
        return since_ != 0 && now - asked_ >= kAskNs && !core_.suspects_neighbour(now + CoreWatch::kSuspicionNs / 2);
    }
    void yielded(uint64_t began, uint64_t ended);
    void slept(uint64_t ended);
    void moved(bool found, uint64_t ended);
    /// Restarts the policy after a poll that found something.
    void reset() {
        announced_ = false;
        polls_ = 0;
        since_ = checked_at_ = asked_ = 0;
    }

    bool announced() const { return announced_; }
    /// Returns the time of the first check of the core's state, ns; 0 before it.
    uint64_t since() const { return since_; }

  private:
    CoreWatch& core_;
    uint32_t polls_ = 0;
    const bool later_;
    bool announced_ = false;
    uint64_t since_ = 0;
    uint64_t checked_at_ = 0;  ///< time at which this thread last ran, as far as known
    uint64_t asked_ = 0;       ///< time of the last check whether the machine has enough cores, or the wait's start
};

}  // namespace starling::progress
