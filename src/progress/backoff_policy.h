// The rules of waiting: when to spin, to yield, to sleep. Pure: what is seen comes in, what is to be done goes out, so a
// test plays through days of it without a clock.
#pragma once

#include <cstdint>

namespace starling::progress {

/// What is known of the cores that this process waits on, kept from wait to wait.
///
/// Two kinds of others may want it. *Neighbours* are processes of jobs that we know, on the same core and awake: what we
/// wait for may be theirs to do, and a yield lets them. *Strangers* are all else. A yield hands the core to a stranger
/// too, for a whole slice, and gets nothing for it; so once slices were lost, nobody yields for a while. One alone is no
/// sign: a virtual machine's core may stand still for as long. Strangers stay on their core when the kernel takes us to
/// another, so this is kept by core.
class CoreWatch {
  public:
    /// A slice of the scheduler at the least, and longer than neighbours that wait, too, keep a core between them.
    static constexpr uint64_t kSliceNs = 1'000'000;
    /// Two slices lost with no more than this between them make a core contested; how long it counts as that, which doubles
    /// if a slice is lost again soon after.
    static constexpr uint64_t kBetweenLossesNs = 30'000'000;
    static constexpr uint64_t kFirstContestNs = 20'000'000, kLongestContestNs = 1'280'000'000;
    /// So often in a row a neighbour had the core by our giving it, and one of us had better move. The next try comes after
    /// this time, which doubles as long as there is company and no free core.
    static constexpr uint32_t kTurnsBeforeMove = 32;
    static constexpr uint64_t kFirstRestNs = 5'000'000, kLongestRestNs = 1'280'000'000;

    /// So many yields in a row in which nobody ran, though the machine is short of cores, and waits sleep instead, for so long.
    static constexpr uint32_t kVainYields = 8;
    static constexpr uint64_t kVainNs = 100'000'000;
    /// How long the machine counts as short of cores.
    static constexpr uint64_t kSuspicionNs = 20'000'000;

    /// What is lost from now on for this long counts for nothing: the job starts, and those on the core who are not to be
    /// seen yet are most likely ours, on their way to MPI_Init.
    static constexpr uint64_t kStartNs = 50'000'000;
    void begin(uint64_t now) { begun_ = now + kStartNs; }

    /// The core was gone for so long, by a yield or taken from us, and came back just `now`.
    void lost(uint64_t ns, uint64_t now);
    /// A yield has lasted so long; `now` it is over.
    void yielded(uint64_t ns, uint64_t now);
    /// Where we are, and whether a neighbour is there, as a look has just shown.
    void see(uint32_t cpu, bool neighbour, uint64_t now);
    /// A neighbour has found that strangers want this core: nobody pays for that twice. It holds for a while, since that
    /// neighbour may be asleep at the next look.
    void told_of_strangers(uint64_t now) { contest_->hearsay_until = now + kFirstContestNs; }
    /// The machine is short of cores: there may be a neighbour here that is in no table we see. It holds for a while, as waits that
    /// are short don't ask.
    void suspect_neighbour(uint64_t now) { suspicion_until_ = now + kSuspicionNs; }
    bool suspects_neighbour(uint64_t now) const { return now < suspicion_until_; }
    bool is_on(uint32_t cpu) const { return contest_->cpu == cpu; }
    /// We go to sleep so that a neighbour gets the core, where a yield would give it to strangers.
    void gave_turn() { ++shared_; }
    /// Whether to look for a core of our own now; then say moved().
    bool should_move(uint64_t now);
    /// Whether there was one. The kernel may bring us back: it counts who wants a core, not who waits for whom.
    void moved(bool free_core, uint64_t now);

    /// Strangers want this core, or neighbours that compute: yielding costs a slice.
    bool contested(uint64_t now) const { return now < contest_->until || now < contest_->hearsay_until; }
    /// Worth telling others: found by ourselves, and more than once in a row. A first contest may be none, as where neighbours
    /// have touched much memory for the first time.
    bool sure_of_strangers(uint64_t now) const { return now < contest_->until && contest_->length > kFirstContestNs; }
    /// What we wait for may need this very core.
    bool crowded() const { return (crowded_ && neighbour_) || suspected_; }
    /// Somebody wants a core of this machine, and yields let nobody run: the kernel shares the core between groups of processes
    /// (sessions, containers), and a yield is heard within one's own.
    bool yields_are_vain() const { return vain_ >= kVainYields; }

  private:
    /// Of one core.
    struct Contest {
        uint32_t cpu = ~0u;
        uint64_t last_loss = 0;  ///< when it was over
        uint64_t until = 0;
        uint64_t hearsay_until = 0;
        uint64_t length = 0;  ///< ns, of the last one
    };
    static constexpr uint32_t kCoresKnown = 4;
    Contest contests_[kCoresKnown];
    Contest* contest_ = contests_;  ///< of the core that we are on
    uint32_t next_forgotten_ = 0;
    uint32_t vain_ = 0;      ///< yields in a row in which nobody else has run, while there were too few cores
    uint64_t vain_at_ = 0;   ///< the last of them
    uint32_t lateness_ = 0;  ///< history of yields, a bit each, 1 = someone else has run meanwhile
    bool crowded_ = false, suspected_ = false;
    bool neighbour_ = false;
    uint32_t shared_ = 0;  ///< turns in a row that a neighbour had
    uint64_t suspicion_until_ = 0;
    uint64_t begun_ = 0;       ///< losses count from here on
    uint64_t rest_until_ = 0;  ///< no move before
    uint64_t rest_ = 0;
};

/// One wait.
class Waiting {
  public:
    enum class Act : uint8_t {
        spin,      ///< poll again
        yield,     ///< let a neighbour run; then say yielded()
        move,      ///< look for a core that none of ours uses, and go there; then say moved()
        announce,  ///< say that we sleep, look once more
        sleep,     ///< then say slept()
    };
    /// What decides besides the core; may change from step to step.
    struct Terms {
        bool may_sleep = true;
        uint64_t spin_ns = 0;  ///< before sleeping, where nobody else wants the core
    };
    /// What a look around shows.
    struct Look {
        uint64_t now = 0;             ///< ns
        bool neighbour = false;       ///< one that we know is awake on this core
        uint32_t cpu = 0;             ///< this core
        bool contested = false;       ///< a neighbour has found that strangers want it
        bool short_of_cores = false;  ///< somebody waits for a core of this machine; where should_ask_for_cores() was true
    };

    /// Polls between two looks around, and before the first of them on a crowded core.
    static constexpr uint32_t kPollsPerLook = 16, kPollsCrowded = 20, kDearPollsCrowded = 3;
    /// Where a process must be woken first: it answers in 100 µs, or is busy.
    static constexpr uint32_t kPatience = 3;
    /// Strangers want the core: whom we wait for may have lost its own for a slice, and the less we spin meanwhile the
    /// sooner we get ours back.
    static constexpr uint64_t kContestedSpinNs = 50'000;
    /// Between two questions whether there are cores enough, and from the begin of a wait to the first.
    static constexpr uint64_t kAskNs = 50'000;

    /// `later`: what is waited for has to be woken and needs a core. Spins for as long as that takes, then sleeps.
    Waiting(CoreWatch& core, bool later) : core_(core), later_(later) {}

    /// Counts a poll that found nothing. True if it is time to look around; `polls_alone` is how many come before, where
    /// nobody else wants the core. `dear`: a poll asks the kernel, and takes as long as several of memory.
    bool is_time_to_look(uint32_t polls_alone, bool dear = false) {
        if (announced_) return true;
        ++polls_;
        if (core_.crowded()) return polls_ >= (dear ? kDearPollsCrowded : kPollsCrowded);
        return later_ ? polls_ >= polls_alone * kPatience : polls_ >= polls_alone && polls_ % kPollsPerLook == 0;
    }
    Act next(const Look& look, const Terms& terms);
    /// Whether the next look should say if the machine is short of cores.
    bool should_ask_for_cores(uint64_t now) const {
        return since_ != 0 && now - asked_ >= kAskNs && !core_.suspects_neighbour(now + CoreWatch::kSuspicionNs / 2);
    }
    void yielded(uint64_t began, uint64_t ended);
    void slept(uint64_t ended);
    void moved(bool free_core, uint64_t ended);
    /// Something happened: start over.
    void reset() {
        announced_ = false;
        polls_ = 0;
        since_ = looked_ = asked_ = 0;
    }

    bool announced() const { return announced_; }
    /// ns; when looking around began, 0 before.
    uint64_t since() const { return since_; }

  private:
    CoreWatch& core_;
    uint32_t polls_ = 0;
    const bool later_;
    bool announced_ = false;
    uint64_t since_ = 0;
    uint64_t looked_ = 0;  ///< when we ran last, as far as we know
    uint64_t asked_ = 0;   ///< when it was last known that there are cores enough, or the wait began
};

}  // namespace starling::progress
