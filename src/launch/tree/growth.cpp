// Growth of the tree: decides which hosts this daemon starts itself, and which its children start.
#include <algorithm>

#include "base/error.h"
#include "launch/common/hosts.h"
#include "launch/tree/implementation.h"
#include "launch/tree/munge.h"
#include "mpi.h"

namespace starling::launch {

using Implementation = Tree::Implementation;

// Splits into at most `parts` runs of about the same length.
static std::vector<std::vector<GrowHost>> split(std::vector<GrowHost> hosts, size_t parts) {
    parts = std::min(parts, hosts.size());
    std::vector<std::vector<GrowHost>> result;
    for (size_t i = 0; i < parts; ++i) {
        const auto at = [&](size_t n) { return hosts.begin() + static_cast<ptrdiff_t>(hosts.size() * n / parts); };
        result.emplace_back(std::make_move_iterator(at(i)), std::make_move_iterator(at(i + 1)));
    }
    return result;
}

// While there is room, makes one branch for each run of hosts: its first host starts the others. Without room the smallest branches get the
// hosts, and place them by the same rule.
void Implementation::place(std::vector<GrowHost> list) {
    if (list.empty() || ending || orphan) return;
    if (branches.size() < settings.fanout) {
        for (auto& run : split(std::move(list), settings.fanout - branches.size())) start(std::move(run));
        return;
    }
    std::vector<Branch*> smallest;
    for (Branch& branch : branches) {
        if (branch.state != Branch::BranchState::limbo) smallest.push_back(&branch);
    }
    // All branches may be about to disappear: exceeding the fanout by one is the lesser evil.
    if (smallest.empty()) return start(std::move(list));
    std::stable_sort(smallest.begin(), smallest.end(),
                     [](Branch* a, Branch* b) { return a->members.size() < b->members.size(); });
    auto runs = split(std::move(list), smallest.size());
    for (size_t i = 0; i < runs.size(); ++i) delegate(*smallest[i], std::move(runs[i]));
}

void Implementation::delegate(Branch& branch, std::vector<GrowHost> list) {
    for (const GrowHost& host : list) {
        branch.members.add(host.host);
        if (host.attempt > 1) attempts[host.host] = host.attempt;
    }
    if (list.empty()) return;
    if (branch.state == Branch::BranchState::live) {
        branch.connection->send(TreeFrameKind::grow, encode(Grow{std::move(list)}));
    } else {
        branch.waiting.insert(branch.waiting.end(), std::make_move_iterator(list.begin()), std::make_move_iterator(list.end()));
    }
}

void Implementation::start(std::vector<GrowHost> list) {
    Branch& branch = branches.emplace_back();
    branch.id = ++last_serial;
    branch.head = std::move(list.front());
    branch.members.add(branch.head.host);
    if (branch.head.attempt > 1) attempts[branch.head.host] = branch.head.attempt;
    list.erase(list.begin());
    delegate(branch, std::move(list));
    const std::string& name = branch.head.name;
    if (!may_be_host(name)) { return start_fails_soon(branch, "the name has characters that no host name may have"); }
    if (listen() != MPI_SUCCESS) return start_fails_soon(branch, std::string(failure_text()));
    branch.start = starter->start({settings, branch.head, ancestors_of_child()},
                                  [this, id = branch.id](const std::string& why) { start_failed(id, why); });
    branch.timer = loop.after(settings.start_limit, [this, &branch] {
        branch.timer = 0;
        const std::string seconds = std::to_string((settings.start_limit.count() + 999) / 1000);
        const std::string said = branch.start->greeting_text();
        start_failed(branch.id, "no daemon after " + seconds + " s" + (said.empty() ? "" : ": " + said) +
                                    "; the host may be unreachable or slow (STARLING_LAUNCH_TIMEOUT sets the limit)");
    });
}

// Fails from the loop: callers of start() do not expect a callback within the call.
void Implementation::start_fails_soon(Branch& branch, const std::string& why) {
    branch.timer = loop.after(std::chrono::milliseconds(0), [this, &branch, why] {
        branch.timer = 0;
        start_failed(branch.id, why);
    });
}

void Implementation::start_failed(uint64_t id, const std::string& why) {
    const auto found = std::find_if(branches.begin(), branches.end(), [id](const Branch& b) { return b.id == id; });
    if (found == branches.end() || found->state != Branch::BranchState::starting) return;
    Branch& branch = *found;
    Report failed{Report::HostReportKind::failed, HostSet::one(branch.head.host), branch.head.attempt,
                  "host " + branch.head.name + ": " + why};
    std::vector<GrowHost> waiting = std::move(branch.waiting);
    branch.members.remove(branch.head.host);
    const auto messages = branch.outbox.extract(branch.members);
    remove_branch(branch);
    report(failed);
    place(std::move(waiting));
    for (const auto& message : messages) route(message.content, message.to, message.receipt, nullptr);
    check_end();
}

// Starts listening, unless it does already. Daemons without children do not listen.
int Implementation::listen() {
    if (listener) return MPI_SUCCESS;
    std::string credential, why;
    if (settings.munge && !munge_seal("", credential, why)) return fail(MPI_ERR_OTHER, "%s", why.c_str());
    auto ear = std::make_unique<TreeListener>(
        loop, settings.credentials(), [this](std::unique_ptr<TreeConnection> connection) { on_peer(std::move(connection)); });
    if (const int error = ear->open(settings.interfaces); error != MPI_SUCCESS) return error;
    listener = std::move(ear);
    return MPI_SUCCESS;
}

std::vector<Ancestor> Implementation::ancestors_of_child() const {
    std::vector<Ancestor> list{{self.host, self.name, listener ? listener->endpoints() : std::vector<DaemonAddress>()}};
    list.insert(list.end(), ancestors.begin(), ancestors.end());
    return list;
}

}  // namespace starling::launch
