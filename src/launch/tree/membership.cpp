// Membership: daemons that connect, daemons that have lost their parent, and daemons that are lost.
//
// Each daemon decides locally where a host belongs: it knows under which of its branches the host is. If a host connects in an unexpected
// place, it has lost its parent. Then it is removed from its old branch together with its undelivered messages, and that branch is
// notified. A host that is in no branch has been declared lost, permanently.
#include <algorithm>

#include "launch/tree/addresses.h"
#include "launch/tree/implementation.h"

namespace starling::launch {

using Implementation = Tree::Implementation;

Branch* Implementation::branch_of(TreeHostId host) {
    for (Branch& branch : branches) {
        if (branch.members.contains(host)) return &branch;
    }
    return nullptr;
}

uint32_t Implementation::attempt_of(TreeHostId host) const {
    const auto found = attempts.find(host);
    return found == attempts.end() ? 1 : found->second;
}

void Implementation::on_peer(std::unique_ptr<TreeConnection> connection) {
    TreeConnection* const newcomer = connection.get();
    newcomers.push_back({std::move(connection), EventLoop::Clock::now()});
    TreeConnection::Handlers handlers;
    handlers.on_frame = [this, newcomer](TreeFrameKind kind, std::string& body) {
        if (kind == TreeFrameKind::attach) return on_attach(newcomer, std::string(body));
        newcomer->lose("it did not send its identity");
    };
    handlers.on_close = [this, newcomer](const std::string&) {
        const auto it =
            std::find_if(newcomers.begin(), newcomers.end(), [&](const Newcomer& n) { return n.connection.get() == newcomer; });
        if (it == newcomers.end()) return;
        bury(std::move(it->connection));
        newcomers.erase(it);
    };
    newcomer->set_handlers(std::move(handlers));
}

void Implementation::on_attach(TreeConnection* newcomer, const std::string& body) {
    const auto it =
        std::find_if(newcomers.begin(), newcomers.end(), [&](const Newcomer& n) { return n.connection.get() == newcomer; });
    auto connection = std::move(it->connection);
    newcomers.erase(it);
    Attach attach;
    std::string refusal = "it does not understand this daemon; both must be of the same version of Starling";
    Branch* branch = decode(body, attach) ? adopt(attach, refusal) : nullptr;
    if (!branch) {
        connection->send(TreeFrameKind::refuse, refusal);
        connection->close();
        bury(std::move(connection));
        return;
    }
    TreeConnection* const peer = connection.get();
    connect(
        *branch, std::move(connection),
        [this, branch](TreeFrameKind kind, std::string& frame) { on_branch_frame(*branch, kind, frame); },
        [this, branch](const std::string& why) { on_branch_closed(*branch, why); });
    peer->send(TreeFrameKind::welcome, encode(ancestors_of_child()));
    HostSet not_ours = attach.members;
    not_ours.remove(branch->members);
    if (!not_ours.empty()) peer->send(TreeFrameKind::moved, encode(not_ours));
    if (!branch->waiting.empty()) peer->send(TreeFrameKind::grow, encode(Grow{std::exchange(branch->waiting, {})}));
}

// Returns the branch of the new connection, or null with the reason in `refusal`.
Branch* Implementation::adopt(const Attach& attach, std::string& refusal) {
    Branch* const old = branch_of(attach.host);
    if (!old || attempt_of(attach.host) != attach.attempt || orphan) {
        refusal = "the tree has declared this host lost, or it does not belong to the tree";
        return nullptr;
    }
    const bool at_its_place = old->head.host == attach.host;
    if (at_its_place && old->state != Branch::BranchState::starting && old->incarnation != attach.incarnation) {
        refusal = "another daemon serves this host in the tree already";
        return nullptr;
    }
    std::unordered_map<TreeHostId, uint32_t> theirs(attach.later_attempts.begin(), attach.later_attempts.end());
    HostSet members, known;
    for (const Branch& branch : branches) known.add(branch.members.intersection(attach.members));
    members = known;
    for (const auto& [host, attempt] : attempts) {
        const auto found = theirs.find(host);
        if (known.contains(host) && (found == theirs.end() ? 1 : found->second) != attempt) members.remove(host);
    }
    for (const auto& [host, attempt] : theirs) {
        if (known.contains(host) && attempt_of(host) != attempt) members.remove(host);
    }

    const bool is_new = at_its_place && old->state == Branch::BranchState::starting;
    Branch* branch = old;
    if (!at_its_place) {
        branch = &branches.emplace_back();
        branch->head = {attach.host, attach.attempt, {}};
    }
    std::vector<TreeOutbox::OutboxMessage> messages;
    release(members, branch, messages);
    // Hosts that were delegated to the node but that it does not list: it has declared them lost, or never received them.
    HostSet unknown = branch->members;
    unknown.remove(members);
    for (const GrowHost& host : branch->waiting) unknown.remove(host.host);
    branch->members.add(members);
    branch->state = Branch::BranchState::live;
    branch->incarnation = attach.incarnation;
    branch->has_other_ways = settings.detects_fast() && count_shared_networks(attach.addresses) > 1;
    if (branch->timer != 0) loop.cancel(branch->timer);
    branch->timer = 0;
    if (branch->start) agents.push_back(std::move(branch->start));
    for (auto& message : messages) branch->outbox.push(std::move(message));
    if (!unknown.empty()) {
        branch->timer = loop.after(settings.grace, [this, branch, unknown] {
            branch->timer = 0;
            lose_members(*branch, unknown, "its daemon was being started when the connections to that part of the tree broke");
        });
    }
    if (!is_new && !members.empty()) report({Report::HostReportKind::sure, members, 1, {}});
    return branch;
}

// Removes hosts from all branches except `keep`, which may be null, and appends their undelivered messages to `messages`.
void Implementation::release(const HostSet& hosts, Branch* keep, std::vector<TreeOutbox::OutboxMessage>& messages) {
    std::vector<GrowHost> homeless;
    std::vector<TreeOutbox::OutboxMessage> theirs;  // undelivered messages for the homeless hosts
    std::vector<Branch*> emptied;
    for (Branch& branch : branches) {
        HostSet gone = branch.members.intersection(hosts);
        if (&branch == keep || gone.empty()) continue;
        branch.members.remove(gone);
        for (auto& message : branch.outbox.extract(gone)) messages.push_back(std::move(message));
        if (branch.state == Branch::BranchState::live && !gone.contains(branch.head.host))
            branch.connection->send(TreeFrameKind::moved, encode(gone));
        std::erase_if(branch.waiting, [&](const GrowHost& host) { return gone.contains(host.host); });
        if (gone.contains(branch.head.host)) {
            if (branch.state == Branch::BranchState::starting) {
                for (auto& message : branch.outbox.extract(branch.members)) theirs.push_back(std::move(message));
                branch.members = {};
                std::move(branch.waiting.begin(), branch.waiting.end(), std::back_inserter(homeless));
                branch.waiting.clear();
            } else if (branch.state == Branch::BranchState::live) {
                limbo(branch, "it has moved to another place in the tree");
            }
        }
        if (branch.members.empty()) emptied.push_back(&branch);
    }
    for (Branch* branch : emptied) remove_branch(*branch);
    place(std::move(homeless));
    for (const auto& message : theirs) route(message.content, message.to, message.receipt, nullptr);
}

// Handles the parent's notice that hosts below this daemon have found another parent.
void Implementation::on_moved(const HostSet& hosts) {
    std::vector<TreeOutbox::OutboxMessage> messages;
    release(hosts, nullptr, messages);
    for (const auto& message : messages) route(message.content, message.to, message.receipt, nullptr);
    check_end();
}

void Implementation::on_branch_frame(Branch& branch, TreeFrameKind kind, std::string& body) {
    switch (kind) {
        case TreeFrameKind::message:
            on_message(branch, body);
            break;
        case TreeFrameKind::done:
            on_done(branch, body);
            break;
        case TreeFrameKind::bye:
            remove_branch(branch);
            break;
        default:
            branch.connection->lose("it sent a message that only parents send");
    }
    check_end();
}

static std::string why_lost(const Branch& branch) {
    const std::string name = branch.head.name.empty() ? std::string("its parent") : branch.head.name;
    return "lost the connection to the daemon on " + name + ": " + branch.trouble;
}

// A host whose daemon has ended, or that is silent in its only network, is lost at once in a tree that detects fast. The hosts below it have
// the usual time to find another parent.
void Implementation::on_branch_closed(Branch& branch, const std::string& why) {
    const auto loss = branch.connection ? branch.connection->peer_loss() : TreeConnection::PeerLoss::none;
    const bool is_lost = settings.detects_fast() && (loss == TreeConnection::PeerLoss::ended ||
                                                     (loss == TreeConnection::PeerLoss::silent && !branch.has_other_ways));
    limbo(branch, why);
    if (is_lost) lose_members(branch, HostSet::one(branch.head.host), why_lost(branch));
}

void Implementation::limbo(Branch& branch, const std::string& why) {
    disconnect(branch);
    branch.state = Branch::BranchState::limbo;
    branch.trouble = why;
    branch.is_silent = false;
    if (!branch.members.empty()) report({Report::HostReportKind::suspected, branch.members, 1, {}});
    if (branch.timer != 0) loop.cancel(branch.timer);
    branch.timer = loop.after(settings.grace, [this, &branch] {
        branch.timer = 0;
        const HostSet lost = branch.members;
        lose_members(branch, lost, why_lost(branch));
    });
}

// Reports the hosts of silent branches as suspected, long before they count as lost, so that no new work is placed there.
void Implementation::suspect_silent_branches(EventLoop::Clock::time_point now) {
    constexpr int kBeats = 3;  // a single heartbeat may be late
    // If the hosts' kernels are watched, a silent daemon only has no processor at the moment.
    const auto limit = settings.detects_fast() ? settings.silence_limit / kBeats : settings.heartbeat * kBeats;
    for (Branch& branch : branches) {
        if (!branch.connection || branch.members.empty()) continue;
        const bool silent = now - branch.connection->last_received() > limit;
        if (std::exchange(branch.is_silent, silent) == silent) continue;
        report({silent ? Report::HostReportKind::suspected : Report::HostReportKind::sure, branch.members, 1, {}});
    }
}

void Implementation::remove_branch(Branch& branch) {
    disconnect(branch);
    if (branch.timer != 0) loop.cancel(branch.timer);
    for (const auto& run : branch.members.runs()) {
        for (TreeHostId host = run.first; !attempts.empty() && host < run.end; ++host) attempts.erase(host);
    }
    // Destroy the start later: it may be the caller of this function.
    if (branch.start) defer([start = std::shared_ptr<NodeStart>(std::move(branch.start))] {});
    branches.remove_if([&](const Branch& b) { return &b == &branch; });
}

// Declares hosts of a branch lost, except those that have moved to another parent in the meantime.
void Implementation::lose_members(Branch& branch, const HostSet& hosts, const std::string& why) {
    const HostSet lost = branch.members.intersection(hosts);
    branch.members.remove(lost);
    branch.outbox.extract(lost);
    for (const auto& [host, attempt] : std::unordered_map(attempts)) {
        if (lost.contains(host)) attempts.erase(host);
    }
    if (branch.members.empty()) remove_branch(branch);
    if (!lost.empty()) report({Report::HostReportKind::lost, lost, 1, why});
    check_end();
}

void Implementation::report(const Report& report) {
    if (is_root()) return on_report(report);
    originate(encode(report), {}, HostSet::one(kRootHost), Urgency::control, true);
}

// Checks a report that passes through from below. Returns false if none of it is valid any more.
bool Implementation::pass_report(Branch& from, Content& content) {
    Report report;
    if (!decode(content.payload, report)) return false;
    if (report.what == Report::HostReportKind::ready) return true;
    const HostSet right = report.hosts.intersection(from.members);
    if (right.empty()) return false;
    if (report.what == Report::HostReportKind::failed && attempt_of(report.hosts.front()) != report.attempt) return false;
    if (report.what == Report::HostReportKind::failed || report.what == Report::HostReportKind::lost) {
        from.members.remove(right);
        for (const auto& [host, attempt] : std::unordered_map(attempts)) {
            if (right.contains(host)) attempts.erase(host);
        }
    }
    report.hosts = right;
    content.storage = encode(report);
    content.payload = content.storage;
    return true;
}

// Handles a report at the root.
void Implementation::on_report(const Report& report) {
    for (const TreeHostId id : report.hosts.list()) {
        if (id >= hosts.size()) continue;
        KnownHost& host = hosts[id];
        if (report.what == Report::HostReportKind::lost) {
            on_host_lost(id, report.text);
        } else if (report.what == Report::HostReportKind::suspected || report.what == Report::HostReportKind::sure) {
            on_suspect(id, report.what == Report::HostReportKind::suspected);
        } else if (host.state == KnownHost::KnownHostState::starting && host.attempt == report.attempt) {
            const bool ready = report.what == Report::HostReportKind::ready;
            host.state = ready ? KnownHost::KnownHostState::up : KnownHost::KnownHostState::failed;
            if (ready && handlers.on_ready) handlers.on_ready(id, report.text);
            if (!ready && handlers.on_failed) handlers.on_failed(id, report.text);
        }
    }
}

void Implementation::on_suspect(TreeHostId id, bool suspected) {
    KnownHost& host = hosts[id];
    if (host.state != KnownHost::KnownHostState::up || std::exchange(host.suspected, suspected) == suspected) return;
    if (handlers.on_suspect) handlers.on_suspect(id, suspected);
}

void Implementation::on_host_lost(TreeHostId id, const std::string& why) {
    constexpr uint32_t kMostAttempts = 8;
    KnownHost& host = hosts[id];
    if (host.state == KnownHost::KnownHostState::starting && host.attempt < kMostAttempts && !ending) {
        // The daemon that should have started the host died. The host itself may be fine, so another daemon tries to start it.
        ++host.attempt;
        defer([this, id] { place({{id, hosts[id].attempt, hosts[id].name}}); });
        return;
    }
    const bool was_up = host.state == KnownHost::KnownHostState::up;
    if (!was_up && host.state != KnownHost::KnownHostState::starting) return;
    host.state = was_up ? KnownHost::KnownHostState::lost : KnownHost::KnownHostState::failed;
    const std::string sentence = "host " + host.name + ": " + why;
    if (was_up && handlers.on_lost) handlers.on_lost(id, sentence);
    if (!was_up && handlers.on_failed) handlers.on_failed(id, sentence);
}

}  // namespace starling::launch
