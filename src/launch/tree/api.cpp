// Implements the public functions of Tree.
#include <algorithm>

#include "launch/tree/addresses.h"
#include "launch/tree/implementation.h"

namespace starling::launch {

Tree::Tree(EventLoop& loop, TreeSettings settings)
    : implementation_(std::make_unique<Implementation>(loop, std::move(settings), make_agent_starter(loop))) {}
Tree::Tree(std::unique_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}
Tree::~Tree() = default;

void Tree::set_handlers(TreeHandlers handlers) { implementation_->handlers = std::move(handlers); }
void Tree::set_facts(std::string facts) { implementation_->facts = std::move(facts); }
TreeHostId Tree::self() const { return implementation_->self.host; }
const std::string& Tree::host_name() const { return implementation_->self.name; }

TreeHostId Tree::grow(const std::vector<std::string>& hosts) { return implementation_->grow(hosts); }

const std::string& Tree::name_of(TreeHostId host) const {
    static const std::string unknown = "?";
    const auto& hosts = implementation_->hosts;
    return host < hosts.size() ? hosts[host].name : unknown;
}

bool Tree::is_up(TreeHostId host) const {
    const auto& hosts = implementation_->hosts;
    return host < hosts.size() && hosts[host].state == KnownHost::KnownHostState::up;
}

void Tree::shut_down(std::chrono::milliseconds limit, std::function<void(const std::vector<TreeHostId>&)> done) {
    implementation_->shut_down(limit, std::move(done));
}

void Tree::send(TreeHostId to, std::string payload, Urgency urgency) {
    implementation_->originate(std::move(payload), {}, HostSet::one(to), urgency, false);
}

void Tree::multicast(const std::vector<TreeHostId>& to, std::string payload, Urgency urgency) {
    implementation_->originate(std::move(payload), {}, HostSet::of(to), urgency, false);
}

void Tree::broadcast(std::string payload, Urgency urgency, std::function<void()> arrived) {
    HostSet everybody;
    for (const Branch& branch : implementation_->branches) everybody.add(branch.members);
    implementation_->originate(std::move(payload), {}, std::move(everybody), urgency, false, std::move(arrived));
}

void Tree::scatter(std::string shared, std::vector<std::pair<TreeHostId, std::string>> parts, Urgency urgency) {
    std::sort(parts.begin(), parts.end());
    std::vector<TreeHostId> to;
    for (const auto& part : parts) to.push_back(part.first);
    implementation_->originate(std::move(shared), std::move(parts), HostSet::of(std::move(to)), urgency, false);
}

void Tree::multicast(const HostSet& to, std::string payload, Urgency urgency) {
    implementation_->originate(std::move(payload), {}, to, urgency, false);
}

void Tree::gather(std::string_view topic, std::string_view piece, const HostSet& contributors, Urgency urgency, bool eager) {
    implementation_->gather(topic, piece, contributors, urgency, eager);
}

size_t Tree::bulk_backlog() const { return implementation_->backlog; }

void Tree::hold_bulk(bool hold) {
    implementation_->hold_bulk = hold;
    if (!hold) implementation_->defer([i = implementation_.get()] { i->release_bulk(); });
}

void Tree::leave(std::chrono::milliseconds limit, std::function<void()> done) {
    implementation_->leave(limit, std::move(done));
}

std::vector<uint32_t> Tree::addresses_above() const {
    std::vector<uint32_t> found;
    for (const Ancestor& ancestor : implementation_->ancestors) {
        for (const DaemonAddress& endpoint : ancestor.endpoints) {
            sockaddr_in address{};
            if (socket_address(endpoint, address)) found.push_back(address.sin_addr.s_addr);
        }
    }
    return found;
}

void Tree::bear_silence_of_root(bool bear) { implementation_->root_is_suspended = bear; }

bool Tree::child_exited(pid_t pid, int status) {
    for (Branch& branch : implementation_->branches) {
        if (branch.start && branch.start->child_exited(pid, status)) return true;
    }
    for (const auto& agent : implementation_->agents) {
        if (agent->child_exited(pid, status)) return true;
    }
    return false;
}

}  // namespace starling::launch
