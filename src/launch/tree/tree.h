// The tree of daemons: starts `starlingd node` on other hosts, each of which starts those below it, and carries
// messages between any two of them. It knows nothing of jobs.
//
// Why a tree: no daemon talks to more than `fanout` others, so that starting, telling all, and noticing a death cost
// the logarithm of the number of hosts. Why custody (a hop keeps what it has sent until the last receiver
// has it): a daemon may die at any time with messages in its memory, and who is still alive must miss none.
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

/// Number of a host in its tree. The root is 0; numbers are given out in order by Tree::grow() and never twice.
using HostId = uint32_t;
inline constexpr HostId kRootHost = 0;

/// Control messages overtake bulk ones (standard streams), never the other way round. Within an urgency order holds.
enum class Urgency : uint8_t { control, bulk };

inline constexpr size_t kMaxTreePayload = 64u << 20;  ///< bytes of one message, shared and own part together

/// What arrives. The views are valid during the handler only.
struct TreeMessage {
    HostId from = kRootHost;
    std::string_view payload;  ///< the same for every receiver
    std::string_view own;      ///< this host's part of a scatter(), else empty
};

/// What these hosts have told the root, each of them the same; `bytes` is valid during the handler only.
struct GatheredPiece {
    HostSet hosts;
    std::string_view bytes;
};

/// All are called from the event loop, never from within a call of the Tree. Unset ones are skipped.
struct TreeHandlers {
    std::function<void(const TreeMessage&)> on_message;

    // At the root. For every host of grow() exactly one of on_ready and on_failed is called; for every
    // host that was ready on_lost at most once, and nothing after it.
    std::function<void(HostId, std::string_view facts)> on_ready;
    std::function<void(HostId, const std::string& sentence)> on_failed;
    std::function<void(HostId, const std::string& sentence)> on_lost;
    /// A host that is up may be lost: the connection to it, or to one above it, broke or is silent (true); or it has been
    /// found again (false). Soon after true comes either false or on_lost.
    std::function<void(HostId, bool doubtful)> on_doubt;

    /// Some of the pieces of a gather(). When a daemon on the way has died the same piece may come a second time.
    std::function<void(std::string_view topic, const std::vector<GatheredPiece>& pieces)> on_gathered;

    // At the nodes.
    /// The root, or the way to it, is gone for good: no message goes anywhere any more. End the jobs and stop.
    std::function<void(const std::string& sentence)> on_orphaned;
    /// The root ends the tree: finish, then call leave(). Messages can still be sent until then.
    std::function<void()> on_shut_down;
};

struct TreeSettings {
    TreeKey key;                     ///< a fresh one for each universe: make_key()
    bool munge = false;              ///< MUNGE has to vouch for both ends besides
    bool encrypt = false;            ///< what daemons say to each other is secret
    std::vector<std::string> agent;  ///< called as `agent... host command`; ssh by default
    std::string program;             ///< starlingd as the other hosts know it
    std::string interfaces;          ///< names or addresses to listen on, separated by commas; empty: all that are up
    uint32_t fanout = 16;
    bool keep_agent = false;                         ///< the agent ends with the node, not when it has started it
    std::chrono::milliseconds start_limit{30000};    ///< from calling the agent to a node that is connected
    std::chrono::milliseconds heartbeat{1000};       ///< a connection is never silent for longer
    std::chrono::milliseconds silence_limit{10000};  ///< after which the other end counts as dead
    std::chrono::milliseconds grace{2000};           ///< for a cut-off node to find an ancestor
    std::string version;                             ///< nodes of another one are refused; this build's by default

    /// From the variables (STARLING_TREE_FANOUT, ...), with this installation's starlingd and a new key.
    static TreeSettings from_config();
    TreeCredentials credentials() const { return {key, munge, encrypt}; }
};

/// One daemon's part of the tree. Single-threaded, on `loop`, which must outlive it. Destroying it closes
/// all connections and ends agents that still run; the nodes below then end by themselves.
class Tree {
  public:
    /// The root.
    Tree(EventLoop& loop, TreeSettings settings);
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;
    ~Tree();

    void set_handlers(TreeHandlers handlers);
    /// What the root's on_ready is to be told of this host; at most 64 KB, to be set before the loop runs. Node only.
    void set_facts(std::string facts);

    HostId self() const;
    /// This host's name as the root was given it.
    const std::string& host_name() const;

    // --- root only ---

    /// Starts nodes on hosts and returns the number of the first; the others follow. Returns at once. May be called
    /// again at any time.
    HostId grow(const std::vector<std::string>& hosts);
    /// The name given to grow(), or this machine's for the root.
    const std::string& name_of(HostId host) const;
    /// Whether the host has been reported ready and not lost.
    bool is_up(HostId host) const;
    /// Tells all nodes to end. `done` is called when all have gone, or after `limit` with those that have not
    /// closed their connection by then (they end by themselves once the root's process is gone).
    void shut_down(std::chrono::milliseconds limit, std::function<void(const std::vector<HostId>&)> done);

    // --- messages, from any host to any other ---
    // Each arrives once or its receiver is lost. Order holds for each pair of hosts and urgency; what A
    // sends to B after having got a message that went to both by multicast() or broadcast() from the root arrives at
    // B after it. Messages to hosts that are lost, and to this host itself, are dropped.

    void send(HostId to, std::string payload, Urgency urgency = Urgency::control);
    /// To several hosts; every connection carries it once. Root only, as the next three.
    void multicast(const std::vector<HostId>& to, std::string payload, Urgency urgency = Urgency::control);
    void multicast(const HostSet& to, std::string payload, Urgency urgency = Urgency::control);
    /// To all that are up or still starting (they get it first of all). `arrived` is called when on_message of each has
    /// returned, or its host is lost.
    void broadcast(std::string payload, Urgency urgency = Urgency::control, std::function<void()> arrived = {});
    /// `shared` to all of them and to each its own part besides; a connection carries only the parts of those below it.
    void scatter(std::string shared, std::vector<std::pair<HostId, std::string>> parts, Urgency urgency = Urgency::control);

    /// The other way round: one piece of each of `contributors`, all of whom call this with the same topic and urgency,
    /// to the root. A daemon on the way waits a moment (50 ms) for those below it, so that the root gets a few messages
    /// and not one per host; `eager`: the first piece is not made to wait. It arrives behind what this host has sent before
    /// with the same urgency, but what is sent afterwards may overtake it. Who does not contribute delays the others only.
    void gather(std::string_view topic, std::string_view piece, const HostSet& contributors, Urgency urgency = Urgency::control,
                bool eager = false);

    /// Bulk bytes that this host has sent and that have not arrived yet. Who sends streams pauses while it is large.
    size_t bulk_backlog() const;
    /// Stops (true) handing bulk messages to on_message; they wait where they were sent from, bounded at every hop.
    void hold_bulk(bool hold);

    // --- node only ---

    /// Says good-bye: waits until what was sent has arrived and the nodes below have left, for `limit` at most, closes,
    /// and calls `done`.
    void leave(std::chrono::milliseconds limit, std::function<void()> done);

    /// Where those above listen, the root among them: IPv4 in network byte order.
    std::vector<uint32_t> addresses_above() const;
    /// The root has said that it will be suspended: until it says otherwise, hearing nothing of it means nothing. That it has ended
    /// its connection tells as ever.
    void bear_silence_of_root(bool bear);

    // --- processes ---

    /// For an owner that waits for any child process: true if `pid` was an agent of the tree.
    bool child_exited(pid_t pid, int status);

    struct Implementation;
    /// A node, made by run_node().
    explicit Tree(std::unique_ptr<Implementation> implementation);

  private:
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace starling::launch
