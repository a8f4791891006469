// Lists of jobs' processes for debuggers. They are gathered when a debugger requests them, not with the start reports: those of many hosts
// merge only if they are equal.
#include <csignal>
#include <utility>

#include "launch/universe/universe_job.h"

namespace starling::launch {

namespace {
constexpr std::chrono::seconds kLongestListing{
    3};  // then the processes of hosts that have not answered are missing in the list
}

void Universe::list_processes(JobClient& patron, bool later_jobs) {
    patron.lists_processes = later_jobs;
    for (UniverseJob& job : jobs_) {
        if (job.patron == &patron && job.starting.empty() && job.list_state == UniverseJob::ListState::none) list(job, false);
    }
}

void Universe::list(UniverseJob& job, bool hold) {
    job.list_state = UniverseJob::ListState::requested;
    job.listing = hosts_with_lists(job);
    job.held = hold;
    if (hold) {
        HostOrder stop = job.order(OrderKind::signal);
        stop.signal = SIGSTOP;
        send_order(job.present, stop);
    }
    send_order(job.listing, job.order(OrderKind::list));
    loop_.after(job.listing.empty() ? std::chrono::seconds(0) : kLongestListing, [this, alive = alive_, id = job.id()] {
        UniverseJob* job = *alive ? find(id) : nullptr;
        if (!job || job->list_state != UniverseJob::ListState::requested) return;
        job->listing = {};
        if (job->patron) show_listed(*job->patron);
    });
}

// Returns the job's hosts whose daemons can list processes. The user is notified of the others if a debugger is attached.
HostSet Universe::hosts_with_lists(const UniverseJob& job) const {
    HostSet able = job.present;
    for (const uint32_t host : job.present.list()) {
        if (knows_additions(hosts_[host].facts.version)) continue;
        able.remove(host);
        if (job.patron && job.patron->lists_processes)
            job.patron->print("the daemon on host " + hosts_[host].name +
                              " is of Starling 0.1.0, which does not list processes for debuggers");
    }
    return able;
}

void Universe::on_processes(UniverseJob& job, const HostSet& hosts, std::string_view bytes) {
    const HostSet fresh = hosts.intersection(job.listing);
    ProcessTable table;
    if (fresh.empty() || !decode(bytes, table)) return;
    for (const uint32_t host : fresh.list()) job.processes[host] = table;
    job.listing.remove(fresh);
    if (job.listing.empty() && job.patron) show_listed(*job.patron);
}

// Shows the jobs whose lists are complete, in the order in which they were started.
void Universe::show_listed(JobClient& patron) {
    for (UniverseJob& job : jobs_) {
        if (job.patron != &patron || job.list_state != UniverseJob::ListState::requested) continue;
        if (!job.listing.empty()) return;
        job.list_state = UniverseJob::ListState::shown;
        ProcessTable table = processes_of(job);
        job.processes.clear();
        patron.show_processes(std::move(table), [this, alive = alive_, id = job.id()] {
            UniverseJob* job = *alive ? find(id) : nullptr;
            if (!job || !std::exchange(job->held, false)) return;
            HostOrder go = job->order(OrderKind::signal);
            go.signal = SIGCONT;
            send_order(job->present, go);
        });
    }
}

// Puts the hosts' lists of processes together, by rank.
ProcessTable Universe::processes_of(const UniverseJob& job) const {
    ProcessTable all;
    all.rows.resize(job.description.size);
    std::vector<const ProcessTable*> parts;
    for (const uint32_t host : job.tree_hosts) {
        all.hosts.push_back(hosts_[host].name);
        const auto found = job.processes.find(host);
        parts.push_back(found == job.processes.end() ? nullptr : &found->second);
    }
    for (const job::Placement& run : job.description.placements) {
        for (uint32_t i = 0; i < run.count; ++i) {
            const ProcessTable* part = parts[run.host];
            const ProcessTable::ProcessRow* row =
                part && run.local + i < part->rows.size() ? &part->rows[run.local + i] : nullptr;
            all.rows[run.first + i * run.stride] = {run.host, all.program(row ? part->programs[row->program] : "?"),
                                                    row ? row->pid : 0};
        }
    }
    return all;
}

}  // namespace starling::launch
