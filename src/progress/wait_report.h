// Publishes what this process waits for, for readers in other processes (base/wait_report_page.h). Waits that have lasted for a while are
// recorded here. Only then is the waiting code asked to describe its wait. All calls need the library's lock.
#pragma once

#include "base/wait_report_page.h"
#include "profile/waits.h"

namespace starling::progress {

class WaitReporter;

/// When the awaited event can be expected. `soon`: at any moment, from a running rank. `later`: from a process that must be woken and needs
/// a core, such as the launcher; the wait soon sleeps. `unrung`: by a neighbour's store to memory, which need not ring the doorbell; the
/// wait never sleeps for long.
enum class Expected : uint8_t { soon, later, unrung };

/// A place in the code that waits, described for the reader of a wait report. Must outlive the wait; usually a constant.
struct WaitSite {
    const char* call = nullptr;  ///< name of the wait; null: the MPI function that the thread is in
    Expected expected = Expected::soon;
    /// Reports what is waited for; `argument` is that of wait_until(). Null: there is nothing to add.
    void (*report_wait)(const void* argument, WaitReporter& teller) = nullptr;
};

/// Fills one wait report page.
class WaitReporter {
  public:
    explicit WaitReporter(WaitReportPage& account) : account_(account) {}

    // Functions that describe the current wait. Callbacks of WaitSite call them.
    /// Adds an operation that is waited for. `which` is its address, so that it is not listed again among the open operations.
    void waits_for(const WaitReportPage::OperationEntry& operation, const void* which);
    /// Declares that any one of the operations ends the wait.
    void any_will_do() { wait_->any = 1; }
    /// Declares that the wait is in a collective operation, the `number`th of its communicator.
    void in_collective(uint64_t context, uint32_t number);
    /// Declares that the wait ends when all members have arrived; this process does not know which ones are missing.
    void for_everyone() { wait_->everyone = 1; }
    /// Appends the operation that is waited for to the reported function name: "MPI_Wait" becomes "MPI_Wait (MPI_Ibarrier)".
    void of(const char* operation);

    // Functions that list the other open operations of this process, in three lists that must be filled one after the other.
    void begin_posted() { begin(account_.posted); }
    void begin_sends() { begin(account_.sends); }
    void begin_messages() { begin(account_.messages); }
    void posted(const WaitReportPage::OperationEntry& operation, const void* which) {
        add_open(account_.posted, operation, which);
    }
    void send(const WaitReportPage::OperationEntry& operation, const void* which) {
        add_open(account_.sends, operation, which);
    }
    void message(const WaitReportPage::OperationEntry& operation);
    /// Counts further messages that are not listed one by one.
    void more_messages(uint32_t count) { account_.messages.total += count; }
    /// Returns whether a wait for messages of that peer is reported, so that messages from it are listed first.
    bool waits_for_peer(uint64_t peer_job, uint32_t peer) const;

    /// Starts the description of the next thread's wait. Returns false if the page has no room for it.
    bool begin_wait(uint64_t since, int thread, const char* name);

  private:
    void begin(WaitReportPage::OperationRange& range);
    uint8_t communicator(uint64_t context);
    bool add(WaitReportPage::OperationRange& range, uint32_t most, const WaitReportPage::OperationEntry& operation);
    void add_open(WaitReportPage::OperationRange& range, const WaitReportPage::OperationEntry& operation, const void* which);

    static constexpr uint32_t kRemembered = 64;
    WaitReportPage& account_;
    WaitReportPage::WaitEntry* wait_ = nullptr;
    const void* waited_[kRemembered];
    uint32_t waited_count_ = 0;
};

/// Callbacks that upper rooms set once, before the first wait.
struct TellerUpcalls {
    /// Describes a communicator by its context id. Leaves `out` unchanged if the context id is unknown here.
    void (*communicator)(uint64_t context, WaitReportPage::CommunicatorEntry& out) = nullptr;
    /// Lists posted receives, open sends and unexpected messages.
    void (*messages)(WaitReporter& teller) = nullptr;
};
extern TellerUpcalls teller_upcalls;

/// Sets the address of this process's wait report page; once, in MPI_Init.
void set_account(WaitReportPage& page);

/// Publishes a wait that has lasted for kTellAfterNs. `wait` identifies it. `since` and `now`: ns.
void publish_wait(const void* wait, const WaitSite& site, const void* argument, uint64_t since, uint64_t now);
/// Removes a wait that has ended, if it was published.
void withdraw_wait(const void* wait);
/// Publishes the open operations of a program that tests in a loop and has found nothing; at most once per kTellAgainNs.
void publish_test(uint64_t now);

/// Returns the cause to which the profile attributes a wait at this site. It calls the site's callback, and so costs as much as publishing.
profile::Cause cause_of(const WaitSite& site, const void* argument);

/// How long a wait lasts before it is published, and the interval at which it is published again, ns. A human reader needs no faster
/// updates. Processes that wait for each other in turns never wait as long as kTellAfterNs.
inline constexpr uint64_t kTellAfterNs = 20'000'000, kTellAgainNs = 100'000'000;

}  // namespace starling::progress
