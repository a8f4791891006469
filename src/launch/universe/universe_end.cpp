// The end of jobs: their normal end, or because of a failed rank, a lost host, or the user's order.
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/config.h"
#include "launch/process/hang_report.h"
#include "launch/universe/universe_job.h"
#include "mpi.h"

namespace starling::launch {

using job::JobState;

void Universe::on_failed(UniverseJob& job, uint32_t host, const HostOrder& order) {
    FailureReport report;
    if (!decode(order.bytes, report))
        report.sentence = "a rank on host " + hosts_[host].name + " failed, and its report is invalid";
    if (job.failing) return;
    JobClient* patron = job.patron;
    const bool requested =
        patron && (patron->timed_out || (patron->forwarded_signal != 0 && report.exit_code == 128 + patron->forwarded_signal));
    const bool goes_on = job.spec.recovers && !report.aborted && !(patron && patron->timed_out);
    const bool is_ending = patron && patron->ending() != JobClient::Ending::none;
    if (is_ending && !goes_on && !report.aborted && !patron->timed_out) return await_the_others(job, report, requested);
    if (report.finalized && !goes_on && !report.aborted && !requested) return grant_time(job, report);
    // If one host runs all ranks, its message about the failure already mentions the other ranks.
    const bool others = job.lost_ranks() + 1 < job.description.size && job.tree_hosts.size() > 1;
    if (patron && !requested && !report.sentence.empty()) {
        const char* rest = !others ? "" : goes_on ? "; the others go on" : "; ending the others";
        patron->print(report.sentence + rest);
    }
    if (goes_on) {
        free_slot(job, host);
        return continue_without(job, {{report.rank, 1, 1, 0, 0}}, report.exit_code);
    }
    fail(job, static_cast<int>(report.rank), report.exit_code);
}

// Leaves the other ranks the rest of their time, for example for their parts of a checkpoint.
void Universe::await_the_others(UniverseJob& job, const FailureReport& report, bool requested) {
    JobClient& patron = *job.patron;
    job.note_exit_code(report.exit_code);
    if (std::exchange(job.leaving, true)) return;
    if (!requested && !report.sentence.empty()) patron.print(report.sentence);
    for (UniverseJob& other : jobs_)  // a rank may have spawned it between the signal and now
        if (other.patron == &patron) pass_on_signal(other);
    constexpr std::chrono::milliseconds kQuiet{2000};
    if (!std::exchange(patron.has_begun_to_end, true)) end_late(patron.id);  // not yet, but when the time is over
    loop_.after(kQuiet, [this, alive = alive_, id = job.id()] {
        const UniverseJob* job = *alive ? find(id) : nullptr;
        if (!job || !job->patron || job->failing) return;
        job->patron->print("other processes still run; they have until " + std::to_string(config().signal_grace) +
                           " s after the signal (STARLING_SIGNAL_GRACE) to end. Another Ctrl-C ends them at once");
    });
}

// Lets the other ranks finish, for example their output: one that has finalized may exit with the number of errors that it found, and no rank
// should wait for it. One that does wait is ended after the time.
void Universe::grant_time(UniverseJob& job, const FailureReport& report) {
    JobClient* patron = job.patron;
    const int64_t seconds = config().exit_grace;
    job.note_exit_code(report.exit_code);
    if (std::exchange(job.granted, true)) return;
    const bool others = report.running > 0 || job.tree_hosts.size() > 1;
    if (patron) {
        const std::string time = "; the others have " + std::to_string(seconds) + " s to end (STARLING_EXIT_GRACE)";
        patron->print(report.sentence + (!others ? "" : seconds == 0 ? "; ending the others" : time));
    }
    if (seconds == 0) return fail(job, static_cast<int>(report.rank), report.exit_code);
    loop_.after(std::chrono::seconds(seconds), [this, alive = alive_, id = job.id(), report] {
        UniverseJob* job = *alive ? find(id) : nullptr;
        if (!job || job->failing) return;
        JobClient* patron = job->patron;
        if (!patron || patron->ending() == JobClient::Ending::none)
            return fail(*job, static_cast<int>(report.rank), report.exit_code);
        // A signal has arrived meanwhile, after which the ranks may write a checkpoint: its time counts.
        if (!std::exchange(patron->has_begun_to_end, true)) end_late(patron->id);
    });
}

// Ends the client's jobs if its time is over. The client may have left, and another one may have its address.
void Universe::end_late(uint64_t client) {
    JobClient* patron = find_client(client);
    if (!patron) return;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(patron->end_by - EventLoop::Clock::now());
    if (left.count() > 0) {  // the first call, or another signal has arrived since
        loop_.after(left, [this, alive = alive_, client] {
            if (*alive) end_late(client);
        });
        return;
    }
    for (UniverseJob& job : jobs_) {
        if (job.patron != patron) continue;
        detail(*patron, "ending the processes that still run after " + std::to_string(config().signal_grace) + " s");
        fail(job, -1, 1);
    }
}

void Universe::fail(UniverseJob& job, int failed_rank, int exit_code) {
    if (job.failing) return;
    job.failing = true;
    job.note_exit_code(exit_code);
    send_order(job.holders, job.fail(failed_rank));
    end_children(job);
}

void Universe::end_children(UniverseJob& job) {
    for (UniverseJob& child : jobs_) {
        if (child.spec.parent != job.id() || !is_connected(child) || child.failing) continue;
        if (child.patron) detail(*child.patron, "spawned job " + std::to_string(child.number) + " ends with its parent");
        fail(child, -1, 1);
    }
}

bool Universe::is_connected(const UniverseJob& child) const {
    // In a universe of one host, parents that disconnect record it in the child's segment, without a request to the root.
    const launch::LocalJob* here = launcher_.find_job(child.id());
    return child.connected && (!here || here->connected());
}

// A substitute may use the slot of a dead rank at once. The slots of ranks that end normally are free when all ranks of their host have ended.
void Universe::free_slot(UniverseJob& job, uint32_t host) {
    const auto at = std::find(job.tree_hosts.begin(), job.tree_hosts.end(), host);
    if (at == job.tree_hosts.end()) return;
    uint32_t& ranks = job.ranks_on[static_cast<size_t>(at - job.tree_hosts.begin())];
    if (ranks == 0) return;  // the universe has placed no rank of the job
    --ranks;
    remove_load(host, 1);
}

void Universe::continue_without(UniverseJob& job, const RankRuns& ranks, int exit_code) {
    job.lost.insert(job.lost.end(), ranks.begin(), ranks.end());
    job.note_exit_code(exit_code);
    send_order(job.holders, job.order(OrderKind::ranks_failed, encode(ranks)));
}

void Universe::on_hosts_ended(UniverseJob& job, const HostSet& hosts, std::string_view bytes) {
    const HostSet fresh = hosts.intersection(job.present);
    GoneReport report;
    if (fresh.empty()) return;
    job.present.remove(fresh);
    for (size_t i = 0; i < job.tree_hosts.size(); ++i) {
        // A rank of the host may still be reported as dead, if it has ended before MPI_Init; it has no slot any more then.
        if (fresh.contains(job.tree_hosts[i])) remove_load(job.tree_hosts[i], std::exchange(job.ranks_on[i], 0));
    }
    if (decode(bytes, report)) {
        job.lookups += fresh.size() * report.lookups;
        job.tables += fresh.size() * report.tables;
        if (report.had_arrived) on_arrived(job, fresh);
    }
    check_ended(job);
}

void Universe::check_ended(UniverseJob& job) {
    if (!job.present.empty() || !job.starting.empty()) return;
    if (job.granted && !job.failing) end_children(job);
    remove(job, job.failing || job.leaving || job.granted ? JobState::failed : JobState::ended);
}

void Universe::remove(UniverseJob& job, JobState state) {
    HostOrder over = job.order(OrderKind::over);
    over.state = static_cast<uint64_t>(state);
    send_order(job.holders, over);
    names_.job_ended(job.id());
    end_profile(job);
    JobClient* patron = job.patron;
    if (patron && patron->ending() != JobClient::Ending::none) {
        for (UniverseJob& child : jobs_)
            if (child.spec.parent == job.id() && child.patron && is_connected(child)) pass_on_signal(child);
    }
    if (patron && job.lookups + job.tables > 0) {
        detail(*patron, "finding each other's addresses: " + std::to_string(job.lookups) +
                            " times the ports of one host were fetched, " + std::to_string(job.tables) + " times those of all");
    }
    jobs_.remove_if([&](const UniverseJob& other) { return &other == &job; });
    if (patron && --patron->jobs_left == 0) finish(*patron);
}

void Universe::finish(JobClient& patron) {
    stacks_awaited_.erase(&patron);
    patron.finished(patron.timed_out ? kTimedOut : patron.exit_code);
}

void Universe::on_host_lost(uint32_t host, const std::string& sentence) {
    if (host >= hosts_.size()) return;
    if (on_clients_lost) on_clients_lost(host);
    if (hosts_[host].state == UniverseHost::HostState::alias) return;  // the machine is still up under its other name
    hosts_[host].state = UniverseHost::HostState::lost;
    hosts_[host].problem = sentence;
    hosts_[host].placed = 0;
    forget_machine(host);
    std::vector<job::JobId> touched;
    for (const UniverseJob& job : jobs_) touched.push_back(job.id());
    std::set<JobClient*> told;
    for (const job::JobId id : touched) {
        UniverseJob* job = find(id);
        if (!job) continue;
        job->holders.remove(host);
        job->arriving.remove(host);
        on_input_taken(*job, host);
        job->ports.lost(host);
        send_table(*job);
        if (job->starting.contains(host)) {
            job->starting.remove(host);
            job->present.remove(host);
            job->problem = {MPI_ERR_SPAWN, 0, 0, sentence};
            job->problem_host = host;
            job->lost_while_starting = true;
            if (job->starting.empty()) start_failed(*job);
            continue;
        }
        if (!job->present.contains(host)) continue;
        job->present.remove(host);
        RankRuns ranks_there;
        for (const job::Placement& run : job->description.placements) {
            if (job->tree_hosts[run.host] == host) ranks_there.push_back(run);
        }
        const bool goes_on = job->spec.recovers && !job->present.empty() && !job->failing;
        if (job->patron && !job->failing && told.insert(job->patron).second)
            job->patron->print(sentence + (goes_on ? "; the ranks on other hosts go on" : "; ending the job"));
        if (goes_on) {
            continue_without(*job, ranks_there, 1);
        } else {
            fail(*job, -1, 1);
        }
        check_ended(*job);
    }
    if (told.empty() && on_print) on_print(sentence);
    check_growth();
}

void Universe::end_jobs(JobClient& patron, int exit_code) {
    for (UniverseJob& job : jobs_) {
        if (job.patron == &patron) fail(job, -1, exit_code);
    }
}

void Universe::leave(JobClient& patron) {
    stacks_awaited_.erase(&patron);
    for (UniverseJob& job : jobs_) {
        if (job.patron != &patron) continue;
        fail(job, -1, 1);
    }
    for (UniverseJob& job : jobs_) {
        if (job.patron == &patron) job.patron = nullptr;
    }
}

void Universe::time_out(JobClient& patron, int seconds) {
    patron.print("the job has not ended after " + std::to_string(seconds) + " s (--timeout): ending it");
    patron.timed_out = true;
    const UniverseJob* first = first_job(patron);
    if (!first) return show_stacks(patron);
    char id[20] = "";  // id that selects the jobs to report; empty (without a tree): all jobs of this process
    if (tree_) std::snprintf(id, sizeof id, "%016llx", static_cast<unsigned long long>(first->id()));
    explain(loop_, launcher_, id, {}, other_hosts(*first), [this, alive = alive_, client = patron.id](const std::string& text) {
        // Both the jobs and the job client may have ended since the report was requested.
        JobClient* patron = *alive ? find_client(client) : nullptr;
        if (!patron) return;
        if (!text.empty()) patron->print("what each process waits for:\n" + text.substr(0, text.size() - 1));
        show_stacks(*patron);
    });
}

void Universe::show_stacks(JobClient& patron) {
    uint32_t awaited = 0;
    for (UniverseJob& job : jobs_) {
        if (job.patron != &patron) continue;
        awaited += static_cast<uint32_t>(job.present.size());
        send_order(job.present, job.order(OrderKind::stacks));
    }
    stacks_awaited_[&patron] = awaited + 1;
    on_stacks_shown(patron);
    // A hanging debugger must not delay the end of the job forever.
    constexpr std::chrono::seconds kLongest{20};
    loop_.after(kLongest, [this, alive = alive_, client = patron.id] {
        JobClient* patron = *alive ? find_client(client) : nullptr;
        if (!patron || !stacks_awaited_.contains(patron)) return;
        stacks_awaited_[patron] = 1;
        on_stacks_shown(*patron);
    });
}

void Universe::on_stacks_shown(JobClient& patron) {
    const auto found = stacks_awaited_.find(&patron);
    if (found == stacks_awaited_.end() || --found->second > 0) return;
    stacks_awaited_.erase(found);
    for (UniverseJob& job : jobs_) {
        if (job.patron == &patron) fail(job, -1, kTimedOut);
    }
}

}  // namespace starling::launch
