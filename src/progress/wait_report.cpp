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

struct Told {
    const void* wait;  ///< null: free
    const WaitSite* site;
    const char* call;
    const void* argument;
    uint64_t since;
    int thread;
};

STARLING_STATE Account* page = nullptr;
STARLING_STATE Told told[Account::kWaits];
STARLING_STATE uint64_t last_told = 0;

template <size_t N>
void copy_text(char (&to)[N], const char* from) {
    const size_t length = std::min(std::strlen(from), N - 1);
    std::memcpy(to, from, length);
    to[length] = '\0';
}

Told* find(const void* wait) {
    for (Told& entry : told)
        if (entry.wait == wait) return &entry;
    return nullptr;
}

// On the stack of whoever waits: a page, which it has.
[[gnu::noinline]] void write_all(uint64_t now) {
    last_told = now;
    Account account{};
    account.told = now;
    Teller teller(account);
    for (const Told& entry : told) {
        if (!entry.wait || !teller.begin_wait(entry.since, entry.thread, entry.call)) continue;
        if (entry.site->tell) entry.site->tell(entry.argument, teller);
    }
    if (teller_upcalls.messages) teller_upcalls.messages(teller);
    write_account(*page, account);
}

}  // namespace

bool Teller::begin_wait(uint64_t since, int thread, const char* name) {
    if (account_.waits == Account::kWaits) return false;
    wait_ = &account_.wait[account_.waits++];
    wait_->since = since;
    wait_->thread = thread;
    wait_->communicator = Account::kNoCommunicator;
    copy_text(wait_->call, name);
    begin(wait_->waited);
    return true;
}

void Teller::of(const char* operation) {
    char& end = *std::find(wait_->call, wait_->call + sizeof wait_->call - 1, '\0');
    const auto room = static_cast<size_t>(wait_->call + sizeof wait_->call - &end);
    if (room > std::strlen(operation) + 3) std::snprintf(&end, room, " (%s)", operation);
}

void Teller::begin(Account::Range& range) { range.first = static_cast<uint16_t>(account_.operations); }

bool Teller::add(Account::Range& range, uint32_t most, const Account::Operation& operation) {
    ++range.total;
    if (range.count == most || account_.operations == Account::kOperations) return false;
    Account::Operation& place = account_.operation[account_.operations++];
    ++range.count;
    place = operation;
    place.communicator = communicator(operation.context);
    return true;
}

void Teller::waits_for(const Account::Operation& operation, const void* which) {
    add(wait_->waited, Account::kWaited, operation);
    if (waited_count_ < kRemembered) waited_[waited_count_++] = which;
}

void Teller::add_open(Account::Range& range, const Account::Operation& operation, const void* which) {
    if (std::find(waited_, waited_ + waited_count_, which) == waited_ + waited_count_) add(range, Account::kOthers, operation);
}

void Teller::message(const Account::Operation& operation) { add(account_.messages, Account::kOthers, operation); }

bool Teller::wants_from(uint64_t peer_job, uint32_t peer) const {
    for (uint32_t w = 0; w < account_.waits && w < Account::kWaits; ++w) {
        const Account::Range& range = account_.wait[w].waited;
        for (uint32_t i = range.first; i < range.first + range.count; ++i) {
            const Account::Operation& operation = account_.operation[i];
            if (operation.rank == Account::kAnyRank || (operation.peer == peer && operation.peer_job == peer_job)) return true;
        }
    }
    return false;
}

void Teller::in_collective(uint64_t context, uint32_t number) {
    wait_->collective = 1;
    wait_->communicator = communicator(context);
    wait_->number = number;
}

// All message spaces of a communicator are one to the reader: told apart by the low four bits of the id.
uint8_t Teller::communicator(uint64_t context) {
    context &= ~uint64_t{15};
    for (uint32_t i = 0; i < account_.communicators; ++i)
        if (account_.communicator[i].context == context) return static_cast<uint8_t>(i);
    if (account_.communicators == Account::kCommunicators || !teller_upcalls.communicator) return Account::kNoCommunicator;
    Account::Communicator& place = account_.communicator[account_.communicators];
    teller_upcalls.communicator(context, place);
    if (place.size == 0) return Account::kNoCommunicator;
    place.context = context;
    return static_cast<uint8_t>(account_.communicators++);
}

void set_account(Account& account) { page = &account; }

void tell_wait(const void* wait, const WaitSite& site, const void* argument, uint64_t since, uint64_t now) {
    if (!page) return;
    Told* place = find(wait);
    if (place && now < last_told + kTellAgainNs) return;
    if (!place) {
        if (!(place = find(nullptr))) return;
        const char* call = site.call ? site.call : calling ? calling : "a wait of the library";
        *place = {wait, &site, call, argument, since, static_cast<int>(syscall(SYS_gettid))};
    }
    write_all(now);
}

void end_told_wait(const void* wait) {
    Told* place = find(wait);
    if (!place) return;
    place->wait = nullptr;
    write_all(now_ns());
}

profile::Cause cause_of(const WaitSite& site, const void* argument) {
    if (!site.tell) return profile::Cause::other;
    Account account{};
    Teller teller(account);
    if (!teller.begin_wait(0, 0, "")) return profile::Cause::other;
    site.tell(argument, teller);
    const Account::Wait& wait = account.wait[0];
    if (wait.collective) return profile::Cause::collective;
    const Account::Operation* const first = account.operation + wait.waited.first;
    bool sends = false;
    for (uint32_t i = 0; i < wait.waited.count; ++i) {
        switch (first[i].kind) {
            case Account::Kind::receive:
            case Account::Kind::arriving:
            case Account::Kind::probe:
                return profile::Cause::late_sender;
            case Account::Kind::member:
                return profile::Cause::collective;
            default:
                sends |= first[i].kind == Account::Kind::send;
        }
    }
    return sends ? profile::Cause::late_receiver : profile::Cause::other;
}

void tell_test(uint64_t now) {
    if (page && now > last_told + kTellAgainNs) write_all(now);
}

}  // namespace starling::progress
