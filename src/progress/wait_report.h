// Tells whoever looks from outside what this process waits for (base/wait_report_page.h). The waits that have lasted for a while are
// known here; what each waits for is asked only then, of the place in the code that waits. All calls need the library's lock.
#pragma once

#include "base/wait_report_page.h"
#include "profile/waits.h"

namespace starling::progress {

class WaitReporter;

/// When what is waited for can be expected: at any moment, from a rank that runs; or later, from a process that has to be
/// woken and needs a core for it, as the launcher. Who waits for that soon sleeps.
/// Or unrung: a store of a neighbour's into memory, who need not ring for it; who waits for that does not sleep for long.
enum class Expected : uint8_t { soon, later, unrung };

/// A place in the code that waits: what a reader needs to know of it. Lasts as long as the wait; mostly a constant.
struct WaitSite {
    const char* call = nullptr;  ///< null: the MPI function that the thread is in; else what there is to say instead
    Expected expected = Expected::soon;
    /// Tells what is waited for; `argument` is that of wait_until(). Null: there is nothing to add.
    void (*tell)(const void* argument, WaitReporter& teller) = nullptr;
};

/// Fills one account.
class WaitReporter {
  public:
    explicit WaitReporter(WaitReportPage& account) : account_(account) {}

    // Of the wait that is being told.
    /// An operation that is waited for; `which` is its address, so that it is not told again among those that are open.
    void waits_for(const WaitReportPage::Operation& operation, const void* which);
    /// One of them is enough.
    void any_will_do() { wait_->any = 1; }
    /// The wait is in a collective operation, the `number`th of its communicator.
    void in_collective(uint64_t context, uint32_t number);
    /// It ends when all have come to it; who has not is not known here.
    void for_everyone() { wait_->everyone = 1; }
    /// What the function that waits has been given to wait for: "MPI_Wait" becomes "MPI_Wait (MPI_Ibarrier)".
    void of(const char* operation);

    // Of what else is under way here: three lists, one after the other.
    void begin_posted() { begin(account_.posted); }
    void begin_sends() { begin(account_.sends); }
    void begin_messages() { begin(account_.messages); }
    void posted(const WaitReportPage::Operation& operation, const void* which) { add_open(account_.posted, operation, which); }
    void send(const WaitReportPage::Operation& operation, const void* which) { add_open(account_.sends, operation, which); }
    void message(const WaitReportPage::Operation& operation);
    /// More of a kind, that are not told one by one.
    void more_messages(uint32_t count) { account_.messages.total += count; }
    /// Whether a wait wants a message of this process: such messages are worth their places.
    bool wants_from(uint64_t peer_job, uint32_t peer) const;

    /// Begins with what another thread waits for; false if there is no place for it.
    bool begin_wait(uint64_t since, int thread, const char* name);

  private:
    void begin(WaitReportPage::Range& range);
    uint8_t communicator(uint64_t context);
    bool add(WaitReportPage::Range& range, uint32_t most, const WaitReportPage::Operation& operation);
    void add_open(WaitReportPage::Range& range, const WaitReportPage::Operation& operation, const void* which);

    static constexpr uint32_t kRemembered = 64;
    WaitReportPage& account_;
    WaitReportPage::Wait* wait_ = nullptr;
    const void* waited_[kRemembered];
    uint32_t waited_count_ = 0;
};

/// What rooms above fill in; set once, before the first wait.
struct TellerUpcalls {
    /// What the process knows of a communicator by its context id; leaves `out` as it is if that is nothing.
    void (*communicator)(uint64_t context, WaitReportPage::Communicator& out) = nullptr;
    /// Posted receives, open sends and messages that have come.
    void (*messages)(WaitReporter& teller) = nullptr;
};
extern TellerUpcalls teller_upcalls;

/// Where this process's account is; once, in MPI_Init.
void set_account(WaitReportPage& page);

/// A wait has lasted for a while: told from now on. `wait` names it. `now`: ns.
void tell_wait(const void* wait, const WaitSite& site, const void* argument, uint64_t since, uint64_t now);
/// It has ended. For waits that were told.
void end_told_wait(const void* wait);
/// A program that tests in a loop has found nothing: tells what it has open, not too often.
void tell_test(uint64_t now);

/// What such a wait is put down to in the profile: asks the site, and so costs as much as telling.
profile::Cause cause_of(const WaitSite& site, const void* argument);

/// How long a wait lasts before it is told, and how often it is told again, ns: a person does not look faster, and it costs a
/// process that waits in turns with others nothing.
inline constexpr uint64_t kTellAfterNs = 20'000'000, kTellAgainNs = 100'000'000;

}  // namespace starling::progress
