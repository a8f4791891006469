// The implementation of Tree, for the files of this directory and their tests.
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "launch/tree/connection.h"
#include "launch/tree/gathering.h"
#include "launch/tree/listener.h"
#include "launch/tree/messages.h"
#include "launch/tree/outbox.h"
#include "launch/tree/search.h"
#include "launch/tree/starter.h"
#include "launch/tree/tree.h"

namespace starling::launch {

/// The daemon at the other end of a connection: this daemon's parent, or one of its children.
struct Neighbour {
    uint64_t serial = 0;  ///< number of the current connection; messages of earlier connections are not acknowledged on it
    std::unique_ptr<TreeConnection> connection;  ///< connection to the neighbor; null: there is none at present
    TreeOutbox outbox;
    DoneRanges done[2] = {{Urgency::control, {}}, {Urgency::bulk, {}}};  ///< messages still to be acknowledged
};

/// A child and all hosts below it.
struct Branch : Neighbour {
    enum class BranchState {
        starting,  ///< the launch agent runs, and the child is not connected yet
        live,
        limbo,  ///< the connection is lost; for a while, hosts below may reconnect by themselves
    };
    uint64_t id = 0;
    GrowHost head;
    HostSet members;  ///< the child and all hosts below it, ready or not
    BranchState state = BranchState::starting;
    uint64_t incarnation = 0;
    bool is_silent = false;         ///< true: connected, but silent for some heartbeats
    bool has_other_ways = false;    ///< true: the child shares several networks with this daemon, and can connect over another
    std::vector<GrowHost> waiting;  ///< hosts that the child will start once it is connected
    std::unique_ptr<NodeStart> start;
    EventLoop::TimerId timer = 0;  ///< timer for the end of `starting` or of `limbo`
    std::string trouble;           ///< reason why the branch is in limbo
};

/// The root's record of a host.
struct KnownHost {
    enum class KnownHostState : uint8_t { starting, up, failed, lost };
    std::string name;
    KnownHostState state = KnownHostState::starting;
    uint32_t attempt = 1;
    bool suspected = false;  ///< true: the host is up, but the connection to it is silent or lost
};

struct Tree::Implementation {
    /// Creates the tree's root.
    Implementation(EventLoop& loop, TreeSettings settings, std::unique_ptr<NodeStarter> starter);
    /// Creates a node. `connected` is called once with the result of the first search for a parent: an empty text, or an error sentence.
    /// After an error on_orphaned is not called.
    Implementation(EventLoop& loop, Orders orders, std::unique_ptr<NodeStarter> starter,
                   std::function<void(const std::string&)> connected);
    ~Implementation();

    bool is_root() const { return self.host == kRootHost; }

    // tree.cpp
    TreeHostId grow(const std::vector<std::string>& hosts);
    void shut_down(std::chrono::milliseconds limit, std::function<void(const std::vector<TreeHostId>&)> done);
    void leave(std::chrono::milliseconds limit, std::function<void()> done);
    void begin_end();
    void check_end();
    bool own_link_works(const TreeConnection& child) const;
    void tick();
    void defer(std::function<void()> action);
    void bury(std::unique_ptr<TreeConnection> connection);

    // routing.cpp
    void originate(std::string payload, std::vector<std::pair<TreeHostId, std::string>> parts, HostSet to, Urgency urgency,
                   bool internal, std::function<void()> arrived = {});
    void route(const std::shared_ptr<const Content>& content, HostSet to, const DeliveryReceipt& receipt,
               const Neighbour* from);
    void deliver(const std::shared_ptr<const Content>& content, const DeliveryReceipt& receipt);
    void deliver(const Content& content);
    void release_bulk();
    void on_message(Neighbour& from, std::string& body);
    void on_done(Neighbour& from, const std::string& body);
    bool pull(Neighbour& to, OutgoingFrame& out);
    void connect(Neighbour& neighbour, std::unique_ptr<TreeConnection> connection,
                 std::function<void(TreeFrameKind, std::string&)> on_frame, std::function<void(const std::string&)> on_close);
    void disconnect(Neighbour& neighbour);
    void arrived(uint64_t serial, Urgency urgency, uint64_t number);
    void push(Neighbour& to, TreeOutbox::OutboxMessage message);

    // gathering.cpp: combines pieces of a gather() on their way to the root
    void gather(std::string_view topic, std::string_view piece, const HostSet& contributors, Urgency urgency, bool eager);
    void gather_in(const GatheredPayload& news, Urgency urgency, DeliveryReceipt receipt);
    void gather_up(const std::string& topic, Urgency urgency);
    void gather_up_everything();
    void deliver_gathered(std::string_view bytes);
    void forget_old_gatherings(EventLoop::Clock::time_point now);
    void drop_gatherings();
    HostSet all_here() const;

    // growth.cpp: starts daemons on the hosts below this one
    void place(std::vector<GrowHost> hosts);
    void start(std::vector<GrowHost> hosts);
    void start_fails_soon(Branch& branch, const std::string& why);
    void start_failed(uint64_t branch, const std::string& why);
    void delegate(Branch& branch, std::vector<GrowHost> hosts);
    int listen();
    std::vector<Ancestor> ancestors_of_child() const;

    // membership.cpp: which host is below which daemon
    void on_peer(std::unique_ptr<TreeConnection> connection);
    void on_attach(TreeConnection* newcomer, const std::string& body);
    Branch* adopt(const Attach& attach, std::string& refusal);
    void on_branch_frame(Branch& branch, TreeFrameKind kind, std::string& body);
    void on_branch_closed(Branch& branch, const std::string& why);
    void on_moved(const HostSet& hosts);
    void release(const HostSet& hosts, Branch* keep, std::vector<TreeOutbox::OutboxMessage>& messages);
    void remove_branch(Branch& branch);
    void limbo(Branch& branch, const std::string& why);
    void suspect_silent_branches(EventLoop::Clock::time_point now);
    void lose_members(Branch& branch, const HostSet& hosts, const std::string& why);
    void report(const Report& report);
    bool pass_report(Branch& from, Content& content);
    void on_report(const Report& report);
    void on_suspect(TreeHostId host, bool suspected);
    void on_host_lost(TreeHostId host, const std::string& why);
    Branch* branch_of(TreeHostId host);
    uint32_t attempt_of(TreeHostId host) const;

    // uplink.cpp: connects this daemon to its parent
    void search_uplink(bool first);
    void on_uplink_found(UplinkSearch::FoundParent found);
    void on_uplink_frame(TreeFrameKind kind, std::string& body);
    void on_uplink_closed(const std::string& why);
    void orphaned(const std::string& why);

    EventLoop& loop;
    TreeSettings settings;
    GrowHost self;
    uint64_t incarnation = 0;
    TreeHandlers handlers;
    std::string facts;
    std::unique_ptr<NodeStarter> starter;
    std::function<void(const std::string&)> connected;

    std::unique_ptr<TreeListener> listener;
    std::list<Branch> branches;
    std::unordered_map<TreeHostId, uint32_t> attempts;  ///< number of starts of each host below that was started more than once
    std::vector<KnownHost> hosts;                       ///< the hosts by number; only at the root
    struct Newcomer {
        std::unique_ptr<TreeConnection> connection;  ///< connection that is authenticated, but has not sent its Attach yet
        EventLoop::Clock::time_point since;
    };
    std::list<Newcomer> newcomers;
    std::list<std::unique_ptr<NodeStart>> agents;  ///< launch agents that still run although their node is connected

    Neighbour uplink;
    std::vector<Ancestor> ancestors;  ///< daemons above, from the parent to the root
    std::unique_ptr<UplinkSearch> search;
    bool root_is_suspended = false;

    uint64_t numbers[2] = {};                          ///< number of the last message sent from here, for each urgency
    std::unordered_map<TreeHostId, uint64_t> seen[2];  ///< number of the last message delivered here, by origin
    std::unordered_map<std::string, TopicGathering> gatherings[2];  ///< pieces to send up, by topic; empty at the root
    size_t backlog = 0;  ///< number of bulk bytes sent from here that have not arrived
    bool hold_bulk = false;
    std::deque<std::pair<std::shared_ptr<const Content>, DeliveryReceipt>> held;
    uint64_t last_serial = 0;
    std::unordered_map<uint64_t, Neighbour*> by_serial;

    bool ending = false;   ///< true: the tree is ending, so no more hosts are started
    bool leaving = false;  ///< true: this daemon leaves when no host is below and all messages have arrived
    bool orphan = false;   ///< true: no daemon is above any more
    bool sent_bye = false;
    bool destroying = false;
    EventLoop::Clock::time_point end_limit{};
    EventLoop::TimerId end_timer = 0;
    std::function<void(const std::vector<TreeHostId>&)> on_ended;
    std::function<void()> on_left;

    EventLoop::TimerId heartbeat_timer = 0;
    EventLoop::Clock::time_point last_tick{};
    std::vector<std::unique_ptr<TreeConnection>> graves;
    std::shared_ptr<bool> alive = std::make_shared<bool>(true);
};

}  // namespace starling::launch
