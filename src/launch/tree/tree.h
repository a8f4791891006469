// The tree of daemons: starts `starlingd node` on other hosts, each of which starts the hosts below it, and passes messages between any two
// of them. It knows nothing of jobs.
//
// Why a tree: no daemon communicates with more than `fanout` others. So the cost of starting, broadcasting, and detecting a death is
// logarithmic in the number of hosts. Why each hop stores sent messages until the last receiver has them: a daemon may die at any time with
// messages in its memory, and the live daemons must not miss any of them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/common/event_loop.h"
#include "launch/tree/host_set.h"
#include "launch/tree/key.h"

namespace starling::launch {

inline constexpr TreeHostId kRootHost = 0;

/// Control messages may overtake bulk messages (standard streams), but not vice versa. Messages of one urgency stay in order.
enum class Urgency : uint8_t { control, bulk };

inline constexpr size_t kMaxTreePayload = 64u << 20;  ///< maximum bytes of one message, with all its parts

/// A received message. The views are valid during the handler only.
struct TreeMessage {
    TreeHostId from = kRootHost;
    std::string_view payload;  ///< shared part of the message, identical for all receivers
    std::string_view own;      ///< this host's individual part of a scatter(), otherwise empty
};

/// A piece that the root has gathered, identical from all these hosts. `bytes` is valid during the handler only.
struct GatheredPiece {
    HostSet hosts;
    std::string_view bytes;
};

/// All handlers are called from the event loop, never within a call of the Tree. Handlers that are not set are skipped.
struct TreeHandlers {
    std::function<void(const TreeMessage&)> on_message;

    // Called at the root. For every host of grow() exactly one of on_ready and on_failed is called. For every host that was ready, on_lost
    // is called at most once, and no handler after it.
    std::function<void(TreeHostId, std::string_view facts)> on_ready;
    std::function<void(TreeHostId, const std::string& sentence)> on_failed;
    std::function<void(TreeHostId, const std::string& sentence)> on_lost;
    /// Called with true: a host that is up may be lost, because the connection to it or to a daemon above it broke or is silent. Called
    /// with false: the host can be reached again. After true, either false or on_lost follows soon.
    std::function<void(TreeHostId, bool suspected)> on_suspect;

    /// Receives some of the pieces of a gather(). If a daemon on the way has died, a piece may be received twice.
    std::function<void(std::string_view topic, const std::vector<GatheredPiece>& pieces)> on_gathered;

    // Handlers that are called at the nodes.
    /// Called when the root cannot be reached any more, so that no message can be sent. The node must end its jobs and stop.
    std::function<void(const std::string& sentence)> on_orphaned;
    /// Called when the root ends the tree: the node must finish and then call leave(). Messages can still be sent until then.
    std::function<void()> on_shut_down;
};

struct TreeSettings {
    TreeKey key;                     ///< key of the universe, a new one from make_key()
    bool munge = false;              ///< true: both ends of a connection must also authenticate by MUNGE
    bool encrypt = false;            ///< true: connections between daemons are encrypted
    std::vector<std::string> agent;  ///< program that runs a command elsewhere: `agent... host command`; default: ssh
    std::string program;             ///< path of starlingd on the other hosts
    std::string interfaces;          ///< interfaces or addresses to listen on (comma-separated); empty: all that are up
    uint32_t fanout = 16;
    bool keep_agent = false;  ///< true: the launch agent ends with the node, not when the node is connected
    std::chrono::milliseconds start_limit{30000};    ///< timeout from the start of the agent until the node is connected
    std::chrono::milliseconds heartbeat{1000};       ///< maximum time between two frames on a working connection
    std::chrono::milliseconds silence_limit{10000};  ///< silence after which the peer is treated as dead
    /// Time for which the kernel of the peer's host may acknowledge nothing, after which the peer is treated as dead. A paused or
    /// overloaded daemon is not: its kernel acknowledges. 0: not measured; and a daemon whose connection closes may then reconnect within
    /// `grace`, while otherwise only the hosts below it may.
    std::chrono::milliseconds host_silence_limit{0};
    std::chrono::milliseconds grace{2000};  ///< time for which a disconnected node searches for another ancestor
    std::string version;                    ///< version that a node must have to be accepted; this build's by default

    /// Returns settings from the variables (STARLING_TREE_FANOUT, ...), with this installation's starlingd and a new key. With `recovers` they
    /// are those of a job that continues when a host is lost.
    static TreeSettings from_config(bool recovers = false);
    TreeCredentials credentials() const { return {key, munge, encrypt}; }
    /// Sets the limits for jobs that continue when a host is lost: the user's variables, or shorter defaults (base/recovery_defaults.h).
    void detect_fast();
    bool detects_fast() const { return host_silence_limit.count() > 0; }
};

/// One daemon's part of the tree. Single-threaded, on `loop`, which must outlive it. Its destruction closes all connections and ends
/// running agents; the nodes below then end by themselves.
class Tree {
  public:
    /// Creates the root of a tree.
    Tree(EventLoop& loop, TreeSettings settings);
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;
    ~Tree();

    void set_handlers(TreeHandlers handlers);
    /// Sets the facts that the root's on_ready receives about this host, at most 64 KB. Must be called before the loop runs. Node only.
    void set_facts(std::string facts);

    TreeHostId self() const;
    /// Returns this host's name as it was passed to the root.
    const std::string& host_name() const;

    // --- functions for the root only ---

    /// Starts nodes on hosts and returns the number of the first; the others follow consecutively. Returns at once. May be called again at
    /// any time.
    TreeHostId grow(const std::vector<std::string>& hosts);
    /// Returns the name that was passed to grow(); for the root, this machine's name.
    const std::string& name_of(TreeHostId host) const;
    /// Returns whether the host has been reported ready and not lost.
    bool is_up(TreeHostId host) const;
    /// Orders all nodes to end. `done` is called when all have left, or after `limit`, with the hosts that have not closed their connection
    /// by then. These end by themselves after the root's process has ended.
    void shut_down(std::chrono::milliseconds limit, std::function<void(const std::vector<TreeHostId>&)> done);

    // --- messages between any two hosts ---
    // Each message arrives once, unless its receiver is lost. Messages of one urgency between two hosts stay in order. Suppose the root
    // sends a message to A and B by multicast() or broadcast(). Anything that A sends to B after receiving it arrives at B after that
    // message. Messages to lost hosts and to this host itself are dropped.

    void send(TreeHostId to, std::string payload, Urgency urgency = Urgency::control);
    /// Sends to several hosts; each connection carries the message once. Root only, as are the next three functions.
    void multicast(const std::vector<TreeHostId>& to, std::string payload, Urgency urgency = Urgency::control);
    void multicast(const HostSet& to, std::string payload, Urgency urgency = Urgency::control);
    /// Sends to all hosts that are up or starting; to a starting host it is sent before any later message. `arrived` is called when
    /// on_message has returned on each host that is not lost.
    void broadcast(std::string payload, Urgency urgency = Urgency::control, std::function<void()> arrived = {});
    /// Sends `shared` to all listed hosts, with each host's own part. A connection carries only the parts of the hosts below it.
    void scatter(std::string shared, std::vector<std::pair<TreeHostId, std::string>> parts, Urgency urgency = Urgency::control);

    /// The inverse of scatter(): sends one piece to the root from each host of `contributors`. All of them must call this with the same
    /// topic and urgency.
    ///
    /// A daemon on the way waits up to 50 ms for the hosts below it, so that the root receives a few messages and not one per host. With
    /// `eager`, the first piece is sent on at once. A piece arrives after earlier messages of this host with the same urgency, but later
    /// messages may overtake it. A host that does not contribute only delays the others.
    void gather(std::string_view topic, std::string_view piece, const HostSet& contributors, Urgency urgency = Urgency::control,
                bool eager = false);

    /// Returns the bulk bytes sent from this host that have not arrived. Senders of streams should pause while the number is large.
    size_t bulk_backlog() const;
    /// Stops (true) or resumes (false) passing bulk messages to on_message. Stopped messages wait at their senders; each hop stores a
    /// bounded amount.
    void hold_bulk(bool hold);

    // --- functions for nodes only ---

    /// Leaves the tree: waits until sent messages have arrived and the nodes below have left, for at most `limit`; then closes the
    /// connections and calls `done`.
    void leave(std::chrono::milliseconds limit, std::function<void()> done);

    /// Returns the addresses on which the daemons above listen, including the root: IPv4 in network byte order.
    std::vector<uint32_t> addresses_above() const;
    /// Called with true when the root announces its suspension: until a call with false, the root's silence does not count as its death. A
    /// closed connection still does.
    void bear_silence_of_root(bool bear);

    // --- child processes ---

    /// Handles the status of a child that the caller has reaped. Returns true if `pid` was an agent of the tree.
    bool child_exited(pid_t pid, int status);

    struct Implementation;
    /// Creates a node; called by run_node().
    explicit Tree(std::unique_ptr<Implementation> implementation);

  private:
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace starling::launch
