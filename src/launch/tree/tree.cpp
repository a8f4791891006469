#include "launch/tree/tree.h"

#include <unistd.h>
#include <climits>

#include <algorithm>

#include "base/config.h"
#include "base/random.h"
#include "base/recovery_defaults.h"
#include "base/version.h"
#include "control/start_server.h"
#include "launch/common/text.h"
#include "launch/tree/implementation.h"

namespace starling::launch {

using Implementation = Tree::Implementation;

namespace {

std::string machine_name() {
    char name[HOST_NAME_MAX + 1] = "localhost";
    gethostname(name, sizeof name - 1);
    return name;
}

}  // namespace

TreeSettings TreeSettings::from_config(bool recovers) {
    const Config& variables = config();
    TreeSettings settings;
    settings.key = make_key();
    settings.version = version_text();
    settings.munge = variables.authentication == Authentication::munge;
    settings.encrypt = variables.encryption;
    settings.agent = words_of(variables.launcher_agent ? variables.launcher_agent : "");
    settings.program = control::find_starlingd();
    if (settings.program.empty()) settings.program = "starlingd";  // without a path, so that other hosts search for it in PATH
    settings.interfaces = variables.daemon_interfaces ? variables.daemon_interfaces : "";
    settings.fanout = static_cast<uint32_t>(variables.tree_fanout);
    settings.keep_agent = variables.keep_agent;
    settings.start_limit = std::chrono::seconds(variables.launch_timeout);
    settings.heartbeat = std::chrono::milliseconds(variables.heartbeat_ms);
    settings.silence_limit = std::chrono::milliseconds(variables.silence_ms);
    settings.grace = std::chrono::milliseconds(variables.reattach_ms);
    if (recovers) settings.detect_fast();
    return settings;
}

void TreeSettings::detect_fast() {
    host_silence_limit = std::chrono::milliseconds(value_with_recovery("STARLING_SILENCE_MS"));
    // Several heartbeats must be without an answer; a single one may be on its way.
    constexpr int kBeats = 4;
    heartbeat = std::min(std::chrono::milliseconds(value_with_recovery("STARLING_HEARTBEAT_MS")), host_silence_limit / kBeats);
    silence_limit = std::max(host_silence_limit, std::chrono::milliseconds(Config().silence_ms));
    grace = std::chrono::milliseconds(value_with_recovery("STARLING_REATTACH_MS"));
}

Implementation::Implementation(EventLoop& event_loop, TreeSettings given, std::unique_ptr<NodeStarter> how)
    : loop(event_loop), settings(std::move(given)), self{kRootHost, 1, machine_name()}, starter(std::move(how)) {
    hosts.push_back({self.name, KnownHost::KnownHostState::up, 1});
    tick();
}

Implementation::Implementation(EventLoop& event_loop, Orders orders, std::unique_ptr<NodeStarter> how,
                               std::function<void(const std::string&)> tell)
    : loop(event_loop),
      settings(std::move(orders.settings)),
      self(std::move(orders.self)),
      starter(std::move(how)),
      connected(std::move(tell)),
      ancestors(std::move(orders.ancestors)) {
    incarnation = draw_random_number();
    // Run later, because the owner sets handlers and facts after construction, and both are needed when the parent is found.
    defer([this] {
        report({Report::HostReportKind::ready, HostSet::one(self.host), self.attempt, facts});
        search_uplink(true);
    });
    tick();
}

Implementation::~Implementation() {
    destroying = true;
    *alive = false;
    if (heartbeat_timer != 0) loop.cancel(heartbeat_timer);
    if (end_timer != 0) loop.cancel(end_timer);
    for (Branch& branch : branches) {
        if (branch.timer != 0) loop.cancel(branch.timer);
    }
    held.clear();
    drop_gatherings();
    branches.clear();
    uplink.outbox.extract(HostSet::everyone());
}

void Implementation::defer(std::function<void()> action) {
    loop.after(std::chrono::milliseconds(0), [still = alive, action = std::move(action)] {
        if (*still) action();
    });
}

// Closes a connection and destroys it later: one of the connection's handlers may be the caller, and must return first.
void Implementation::bury(std::unique_ptr<TreeConnection> connection) {
    if (!connection) return;
    connection->close();
    if (graves.empty()) defer([this] { graves.clear(); });
    graves.push_back(std::move(connection));
}

TreeHostId Implementation::grow(const std::vector<std::string>& names) {
    const auto first = static_cast<TreeHostId>(hosts.size());
    std::vector<GrowHost> list;
    for (const std::string& name : names) {
        list.push_back({static_cast<TreeHostId>(hosts.size()), 1, name});
        hosts.push_back({name, KnownHost::KnownHostState::starting, 1});
    }
    place(std::move(list));
    return first;
}

// Returns whether the silence of a child is that of its host, and not of this daemon's own link: the parent answers over the same link. If not,
// the child has the time to find another parent. The root's judgement counts in any case: without its link the job has lost all hosts.
bool Implementation::own_link_works(const TreeConnection& child) const {
    if (is_root()) return true;
    const TreeConnection* const parent = uplink.connection.get();
    return parent && !parent->is_closed() && parent->host_silence() == EventLoop::Clock::duration(0) &&
           parent->own_address() == child.own_address();
}

// Sends heartbeats and detects silent connections.
void Implementation::tick() {
    const auto now = EventLoop::Clock::now();
    const auto period = std::max(settings.heartbeat / 2, std::chrono::milliseconds(1));
    // A daemon that was suspended itself has received nothing, so the silence proves nothing about its neighbors.
    const auto passed = last_tick == EventLoop::Clock::time_point{} ? EventLoop::Clock::duration(0) : now - last_tick;
    const bool slept = passed > settings.silence_limit / 2;
    last_tick = now;
    heartbeat_timer = loop.after(period, [this] { tick(); });
    std::vector<TreeConnection*> all;
    for (const auto& [serial, neighbour] : by_serial) all.push_back(neighbour->connection.get());
    for (TreeConnection* connection : all) {
        if (connection->is_closed()) continue;
        const bool suspended =
            root_is_suspended && connection == uplink.connection.get() && ancestors.front().host == kRootHost;
        if (slept || suspended) connection->forgive();
        // A late tick counts like two: this daemon has not run meanwhile, and has sent nothing that a host could acknowledge.
        connection->count_host_silence(now, std::min<EventLoop::Clock::duration>(passed, 2 * period));
        if (settings.detects_fast() && connection->host_silence() > settings.host_silence_limit) {
            const std::string why = "its host has acknowledged nothing for " +
                                    std::to_string(settings.host_silence_limit.count()) + " ms (STARLING_SILENCE_MS)";
            if (own_link_works(*connection)) {
                connection->lose_silent(why);
            } else {
                connection->lose(why);
            }
        } else if (now - connection->last_received() > settings.silence_limit) {
            connection->lose("no sign of life for " + std::to_string(settings.silence_limit.count()) + " ms");
        } else if (now - connection->last_sent() >= period && connection->all_written()) {
            connection->send(TreeFrameKind::heartbeat, {});
        }
    }
    while (!newcomers.empty() && now - newcomers.front().since > TreeListener::kTimeToProve)
        newcomers.front().connection->lose("it did not send its identity");
    suspect_silent_branches(now);
    forget_old_gatherings(now);
    agents.remove_if([](const auto& agent) { return agent->finished(); });
}

// Starts no more hosts, and cancels the starts in progress.
void Implementation::begin_end() {
    if (ending) return;
    ending = true;
    for (auto it = branches.begin(); it != branches.end();) {
        Branch& branch = *it++;
        if (branch.state == Branch::BranchState::starting) remove_branch(branch);
    }
    if (is_root()) return;
    if (handlers.on_shut_down) {
        handlers.on_shut_down();
    } else {
        leave(settings.grace, {});
    }
}

void Implementation::shut_down(std::chrono::milliseconds limit, std::function<void(const std::vector<TreeHostId>&)> done) {
    if (on_ended) return;
    on_ended = std::move(done);
    begin_end();
    HostSet everybody;
    for (const Branch& branch : branches) everybody.add(branch.members);
    originate({}, {}, everybody, Urgency::control, true);
    end_limit = EventLoop::Clock::now() + limit;
    leaving = true;
    defer([this] { check_end(); });
    end_timer = loop.after(limit, [this] {
        end_timer = 0;
        check_end();
    });
}

void Implementation::leave(std::chrono::milliseconds limit, std::function<void()> done) {
    if (leaving) return;
    leaving = true;
    ending = true;
    on_left = std::move(done);
    gather_up_everything();
    end_limit = EventLoop::Clock::now() + limit;
    defer([this] { check_end(); });
    end_timer = loop.after(limit, [this] {
        end_timer = 0;
        check_end();
    });
}

// Completes leave() or shut_down() once no host is below and (at a node) all messages have arrived, or after the time limit.
void Implementation::check_end() {
    if (!leaving) return;
    const bool late = EventLoop::Clock::now() >= end_limit;
    if (!late && !branches.empty()) return;
    if (is_root()) {
        std::vector<TreeHostId> left;
        for (const Branch& branch : branches) {
            const auto members = branch.members.list();
            left.insert(left.end(), members.begin(), members.end());
        }
        leaving = false;
        defer([this, left] {
            if (const auto tell = std::exchange(on_ended, nullptr)) tell(left);
        });
        return;
    }
    const bool nothing_to_send = orphan || (uplink.outbox.empty() && uplink.connection);
    if (!late && !nothing_to_send) return;
    leaving = false;
    sent_bye = true;
    if (uplink.connection) {
        uplink.connection->send(TreeFrameKind::bye, {});
        disconnect(uplink);
    }
    defer([this] {
        if (const auto tell = std::exchange(on_left, nullptr)) tell();
    });
}

}  // namespace starling::launch
