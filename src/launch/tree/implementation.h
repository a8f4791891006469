// The inside of a Tree, for the files of this directory and their tests.
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

/// The daemon at the other end of one edge of the tree.
struct Neighbour {
    uint64_t serial = 0;  ///< of the present connection; what an older one delivered is not acknowledged on this one
    std::unique_ptr<TreeConnection> connection;  ///< null while there is none
    Outbox outbox;
    DoneRanges done[2] = {{Urgency::control, {}}, {Urgency::bulk, {}}};  ///< to be said
};

/// A child and all below it.
struct Branch : Neighbour {
    enum class State {
        starting,  ///< an agent is at work
        live,
        limbo,  ///< the connection is lost: those below may come by themselves, for a while
    };
    uint64_t id = 0;
    GrowHost head;
    HostSet members;  ///< the head, and all below it, ready or not
    State state = State::starting;
    uint64_t incarnation = 0;
    bool doubted = false;           ///< live, but silent for a while
    std::vector<GrowHost> waiting;  ///< to be started by the head, when it is there
    std::unique_ptr<NodeStart> start;
    EventLoop::TimerId timer = 0;  ///< of the start, or of limbo
    std::string trouble;           ///< why it is in limbo
};

/// What the root knows of a host.
struct KnownHost {
    enum class State : uint8_t { starting, up, failed, lost };
    std::string name;
    State state = State::starting;
    uint32_t attempt = 1;
    bool doubtful = false;  ///< while up
};

struct Tree::Implementation {
    /// The root.
    Implementation(EventLoop& loop, TreeSettings settings, std::unique_ptr<NodeStarter> starter);
    /// A node. `connected` is told once whether the first search has succeeded: an empty text, or the
    /// sentence; in that case on_orphaned is not called.
    Implementation(EventLoop& loop, Orders orders, std::unique_ptr<NodeStarter> starter,
                   std::function<void(const std::string&)> connected);
    ~Implementation();

    bool is_root() const { return self.host == kRootHost; }

    // tree.cpp
    HostId grow(const std::vector<std::string>& hosts);
    void shut_down(std::chrono::milliseconds limit, std::function<void(const std::vector<HostId>&)> done);
    void leave(std::chrono::milliseconds limit, std::function<void()> done);
    void begin_end();
    void check_end();
    void tick();
    void defer(std::function<void()> action);
    void bury(std::unique_ptr<TreeConnection> connection);

    // routing.cpp
    void originate(std::string payload, std::vector<std::pair<HostId, std::string>> parts, HostSet to, Urgency urgency,
                   bool internal, std::function<void()> arrived = {});
    void route(const std::shared_ptr<const Content>& content, HostSet to, const Receipt& receipt, const Neighbour* from);
    void deliver(const std::shared_ptr<const Content>& content, const Receipt& receipt);
    void hand_over(const Content& content);
    void release_bulk();
    void on_message(Neighbour& from, std::string& body);
    void on_done(Neighbour& from, const std::string& body);
    bool pull(Neighbour& to, Outgoing& out);
    void connect(Neighbour& neighbour, std::unique_ptr<TreeConnection> connection,
                 std::function<void(FrameKind, std::string&)> on_frame, std::function<void(const std::string&)> on_close);
    void disconnect(Neighbour& neighbour);
    void arrived(uint64_t serial, Urgency urgency, uint64_t number);
    void push(Neighbour& to, Outbox::Message message);

    // gathering.cpp: put together on the way up
    void gather(std::string_view topic, std::string_view piece, const HostSet& contributors, Urgency urgency, bool eager);
    void gather_in(const Gathered& news, Urgency urgency, Receipt receipt);
    void gather_up(const std::string& topic, Urgency urgency);
    void gather_up_everything();
    void hand_over_gathered(std::string_view bytes);
    void forget_old_gatherings(EventLoop::Clock::time_point now);
    void drop_gatherings();
    HostSet all_here() const;

    // growth.cpp: the way down
    void place(std::vector<GrowHost> hosts);
    void start(std::vector<GrowHost> hosts);
    void start_fails_soon(Branch& branch, const std::string& why);
    void start_failed(uint64_t branch, const std::string& why);
    void delegate(Branch& branch, std::vector<GrowHost> hosts);
    int listen();
    std::vector<Ancestor> ancestors_of_child() const;

    // membership.cpp: who hangs where
    void on_peer(std::unique_ptr<TreeConnection> connection);
    void on_attach(TreeConnection* newcomer, const std::string& body);
    Branch* adopt(const Attach& attach, std::string& refusal);
    void on_branch_frame(Branch& branch, FrameKind kind, std::string& body);
    void on_branch_closed(Branch& branch, const std::string& why);
    void on_moved(const HostSet& hosts);
    void release(const HostSet& hosts, Branch* keep, std::vector<Outbox::Message>& messages);
    void remove_branch(Branch& branch);
    void limbo(Branch& branch, const std::string& why);
    void doubt_silent_branches(EventLoop::Clock::time_point now);
    void lose_members(Branch& branch, const HostSet& hosts, const std::string& why);
    void report(const Report& report);
    bool pass_report(Branch& from, Content& content);
    void on_report(const Report& report);
    void on_doubt(HostId host, bool doubtful);
    void on_host_lost(HostId host, const std::string& why);
    Branch* branch_of(HostId host);
    uint32_t attempt_of(HostId host) const;

    // uplink.cpp: the way up
    void search_uplink(bool first);
    void on_uplink_found(UplinkSearch::Found found);
    void on_uplink_frame(FrameKind kind, std::string& body);
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
    std::unordered_map<HostId, uint32_t> attempts;  ///< of hosts below that were started more than once
    std::vector<KnownHost> hosts;                   ///< root only, by number
    struct Newcomer {
        std::unique_ptr<TreeConnection> connection;  ///< proved, has not said yet who it is
        EventLoop::Clock::time_point since;
    };
    std::list<Newcomer> newcomers;
    std::list<std::unique_ptr<NodeStart>> agents;  ///< whose node is there, and which have not ended yet

    Neighbour uplink;
    std::vector<Ancestor> ancestors;  ///< the parent first
    std::unique_ptr<UplinkSearch> search;
    bool root_is_suspended = false;

    uint64_t numbers[2] = {};                                  ///< of the last message sent from here, by urgency
    std::unordered_map<HostId, uint64_t> seen[2];              ///< by origin: the last message delivered here
    std::unordered_map<std::string, Gathering> gatherings[2];  ///< by topic; at the root none
    size_t backlog = 0;                                        ///< bulk bytes from here that have not arrived
    bool hold_bulk = false;
    std::deque<std::pair<std::shared_ptr<const Content>, Receipt>> held;
    uint64_t last_serial = 0;
    std::unordered_map<uint64_t, Neighbour*> by_serial;

    bool ending = false;   ///< nothing is started any more
    bool leaving = false;  ///< goes when nobody is below and all has arrived
    bool orphan = false;   ///< nothing is above any more
    bool said_bye = false;
    bool destroying = false;
    EventLoop::Clock::time_point end_limit{};
    EventLoop::TimerId end_timer = 0;
    std::function<void(const std::vector<HostId>&)> on_ended;
    std::function<void()> on_left;

    EventLoop::TimerId heartbeat_timer = 0;
    EventLoop::Clock::time_point last_tick{};
    std::vector<std::unique_ptr<TreeConnection>> graves;
    std::shared_ptr<bool> alive = std::make_shared<bool>(true);
};

}  // namespace starling::launch
