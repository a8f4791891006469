#include "progress/wait_report.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/clock.h"
#include "base/current_function.h"
#include "base/state.h"

namespace starling::progress {

STARLING_STATE TellerUpcalls teller_upcalls;

namespace {

struct PublishedWait {
    const void* wait;  ///< identity of the published wait; null: the entry is free
    const WaitSite* site;
    const char* call;
    const void* argument;
    uint64_t since;
    int thread;
};

STARLING_STATE WaitReportPage* page = nullptr;
STARLING_STATE PublishedWait told[WaitReportPage::kWaits];
STARLING_STATE uint64_t last_published = 0;

template <size_t N>
void copy_text(char (&to)[N], const char* from) {
    const size_t length = std::min(std::strlen(from), N - 1);
    std::memcpy(to, from, length);
    to[length] = '\0';
}

PublishedWait* find(const void* wait) {
    for (PublishedWait& entry : told)
        if (entry.wait == wait) return &entry;
    return nullptr;
}

// Writes the whole wait report page, which is built on the stack of the waiting thread, because that has room for one.
[[gnu::noinline]] void write_all(uint64_t now) {
    last_published = now;
    WaitReportPage account{};
    account.written_at = now;
    WaitReporter teller(account);
    for (const PublishedWait& entry : told) {
        if (!entry.wait || !teller.begin_wait(entry.since, entry.thread, entry.call)) continue;
        if (entry.site->report_wait) entry.site->report_wait(entry.argument, teller);
    }
    if (teller_upcalls.messages) teller_upcalls.messages(teller);
    write_account(*page, account);
}

}  // namespace

bool WaitReporter::begin_wait(uint64_t since, int thread, const char* name) {
    if (account_.waits == WaitReportPage::kWaits) return false;
    wait_ = &account_.wait[account_.waits++];
    wait_->since = since;
    wait_->thread = thread;
    wait_->communicator = WaitReportPage::kNoCommunicator;
    copy_text(wait_->call, name);
    begin(wait_->waited);
    return true;
}

void WaitReporter::of(const char* operation) {
    char& end = *std::find(wait_->call, wait_->call + sizeof wait_->call - 1, '\0');
    const auto room = static_cast<size_t>(wait_->call + sizeof wait_->call - &end);
    if (room > std::strlen(operation) + 3) std::snprintf(&end, room, " (%s)", operation);
}

void WaitReporter::begin(WaitReportPage::OperationRange& range) { range.first = static_cast<uint16_t>(account_.operations); }

bool WaitReporter::add(WaitReportPage::OperationRange& range, uint32_t most, const WaitReportPage::OperationEntry& operation) {
    ++range.total;
    if (range.count == most || account_.operations == WaitReportPage::kOperations) return false;
    WaitReportPage::OperationEntry& place = account_.operation[account_.operations++];
    ++range.count;
    place = operation;
    place.communicator = communicator(operation.context);
    return true;
}

void WaitReporter::waits_for(const WaitReportPage::OperationEntry& operation, const void* which) {
    add(wait_->waited, WaitReportPage::kWaited, operation);
    if (waited_count_ < kRemembered) waited_[waited_count_++] = which;
}

void WaitReporter::add_open(WaitReportPage::OperationRange& range, const WaitReportPage::OperationEntry& operation,
                            const void* which) {
    if (std::find(waited_, waited_ + waited_count_, which) == waited_ + waited_count_)
        add(range, WaitReportPage::kOthers, operation);
}

void WaitReporter::message(const WaitReportPage::OperationEntry& operation) {
    add(account_.messages, WaitReportPage::kOthers, operation);
}

bool WaitReporter::waits_for_peer(uint64_t peer_job, uint32_t peer) const {
    for (uint32_t w = 0; w < account_.waits && w < WaitReportPage::kWaits; ++w) {
        const WaitReportPage::OperationRange& range = account_.wait[w].waited;
        for (uint32_t i = range.first; i < range.first + range.count; ++i) {
            const WaitReportPage::OperationEntry& operation = account_.operation[i];
            if (operation.rank == WaitReportPage::kAnyRank || (operation.peer == peer && operation.peer_job == peer_job))
                return true;
        }
    }
    return false;
}

void WaitReporter::in_collective(uint64_t context, uint32_t number) {
    wait_->collective = 1;
    wait_->communicator = communicator(context);
    wait_->number = number;
}

// Returns the table index of a communicator. All match contexts of a communicator count as one; they differ in the low four bits of the id.
uint8_t WaitReporter::communicator(uint64_t context) {
    context &= ~uint64_t{15};
    for (uint32_t i = 0; i < account_.communicators; ++i)
        if (account_.communicator[i].context == context) return static_cast<uint8_t>(i);
    if (account_.communicators == WaitReportPage::kCommunicators || !teller_upcalls.communicator)
        return WaitReportPage::kNoCommunicator;
    WaitReportPage::CommunicatorEntry& place = account_.communicator[account_.communicators];
    teller_upcalls.communicator(context, place);
    if (place.size == 0) return WaitReportPage::kNoCommunicator;
    place.context = context;
    return static_cast<uint8_t>(account_.communicators++);
}

void set_account(WaitReportPage& account) { page = &account; }

void publish_wait(const void* wait, const WaitSite& site, const void* argument, uint64_t since, uint64_t now) {
    if (!page) return;
    PublishedWait* place = find(wait);
    if (place && now < last_published + kTellAgainNs) return;
    if (!place) {
        if (!(place = find(nullptr))) return;
        const char* call = site.call ? site.call : calling ? calling : "a wait of the library";
        *place = {wait, &site, call, argument, since, static_cast<int>(syscall(SYS_gettid))};
    }
    write_all(now);
}

void withdraw_wait(const void* wait) {
    PublishedWait* place = find(wait);
    if (!place) return;
    place->wait = nullptr;
    write_all(now_ns());
}

profile::Cause cause_of(const WaitSite& site, const void* argument) {
    if (!site.report_wait) return profile::Cause::other;
    WaitReportPage account{};
    WaitReporter teller(account);
    if (!teller.begin_wait(0, 0, "")) return profile::Cause::other;
    site.report_wait(argument, teller);
    const WaitReportPage::WaitEntry& wait = account.wait[0];
    if (wait.collective) return profile::Cause::collective;
    const WaitReportPage::OperationEntry* const first = account.operation + wait.waited.first;
    bool sends = false;
    for (uint32_t i = 0; i < wait.waited.count; ++i) {
        switch (first[i].kind) {
            case WaitReportPage::OperationKind::receive:
            case WaitReportPage::OperationKind::arriving:
            case WaitReportPage::OperationKind::probe:
                return profile::Cause::late_sender;
            case WaitReportPage::OperationKind::member:
                return profile::Cause::collective;
            default:
                sends |= first[i].kind == WaitReportPage::OperationKind::send;
        }
    }
    return sends ? profile::Cause::late_receiver : profile::Cause::other;
}

void publish_test(uint64_t now) {
    if (page && now > last_published + kTellAgainNs) write_all(now);
}

}  // namespace starling::progress
