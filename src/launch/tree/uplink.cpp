// The connection to the parent: finds a parent, and another one if it is lost.
#include <algorithm>

#include "launch/tree/addresses.h"
#include "launch/tree/implementation.h"

namespace starling::launch {

using Implementation = Tree::Implementation;

void Implementation::search_uplink(bool first) {
    Attach attach{self.host, self.attempt, incarnation, HostSet::one(self.host), {}, {}};
    for (const Branch& branch : branches) attach.members.add(branch.members);
    for (const auto& [host, attempt] : attempts) {
        if (attach.members.contains(host)) attach.later_attempts.emplace_back(host, attempt);
    }
    if (self.attempt > 1) attach.later_attempts.emplace_back(self.host, self.attempt);
    if (settings.detects_fast() && own_addresses(settings.interfaces, attach.addresses)) attach.addresses.clear();
    // Try a parent that was just lost last: the ancestors above it decide what happens to its subtree.
    std::vector<Ancestor> candidates = ancestors;
    if (!first && candidates.size() > 1) std::rotate(candidates.begin(), candidates.begin() + 1, candidates.end());
    const auto limit = first ? settings.start_limit / 2 : settings.grace;
    search = std::make_unique<UplinkSearch>(
        loop, settings.credentials(), candidates, encode(attach), limit, !first,
        [this](UplinkSearch::FoundParent found) { on_uplink_found(std::move(found)); },
        [this, first](const std::string& why) {
            if (!first) return orphaned("no daemon above this one can be reached: " + why);
            orphan = true;
            if (connected) connected(why);
        });
}

void Implementation::on_uplink_found(UplinkSearch::FoundParent found) {
    defer([old = std::shared_ptr<UplinkSearch>(std::move(search))] {});
    ancestors = std::move(found.ancestors);
    connect(
        uplink, std::move(found.connection), [this](TreeFrameKind kind, std::string& body) { on_uplink_frame(kind, body); },
        [this](const std::string& why) { on_uplink_closed(why); });
    for (Branch& branch : branches) {
        if (branch.connection) branch.connection->send(TreeFrameKind::ancestry, encode(ancestors_of_child()));
    }
    if (const auto tell = std::exchange(connected, nullptr)) tell({});
}

void Implementation::on_uplink_frame(TreeFrameKind kind, std::string& body) {
    Grow grow;
    HostSet moved;
    std::vector<Ancestor> above;
    bool good = true;
    switch (kind) {
        case TreeFrameKind::message:
            on_message(uplink, body);
            break;
        case TreeFrameKind::done:
            on_done(uplink, body);
            break;
        case TreeFrameKind::grow:
            good = decode(body, grow);
            if (good) place(std::move(grow.hosts));
            break;
        case TreeFrameKind::moved:
            good = decode(body, moved);
            if (good) on_moved(moved);
            break;
        case TreeFrameKind::ancestry:
            good = decode(body, above);
            if (!good) break;
            ancestors = std::move(above);
            for (Branch& branch : branches) {
                if (branch.connection) branch.connection->send(TreeFrameKind::ancestry, encode(ancestors_of_child()));
            }
            break;
        case TreeFrameKind::end:
            orphaned(body);
            break;
        default:
            good = false;
    }
    if (!good && uplink.connection) uplink.connection->lose("it sent a message that parents never send");
    check_end();
}

void Implementation::on_uplink_closed(const std::string& why) {
    disconnect(uplink);
    if (sent_bye || orphan) return check_end();
    (void)why;
    search_uplink(false);
}

// Ends this daemon's part of the tree, because no daemon above is left. Notifies the hosts below, which need not search for a parent then.
void Implementation::orphaned(const std::string& why) {
    if (orphan) return;
    orphan = true;
    disconnect(uplink);
    if (search) defer([old = std::shared_ptr<UplinkSearch>(std::move(search))] {});
    for (Branch& branch : branches) {
        if (!branch.connection) continue;
        branch.connection->send(TreeFrameKind::end, why);
        branch.connection->close();
    }
    while (!branches.empty()) remove_branch(branches.front());
    uplink.outbox.extract(HostSet::everyone());
    drop_gatherings();
    if (handlers.on_orphaned) handlers.on_orphaned(why);
    check_end();
}

}  // namespace starling::launch
