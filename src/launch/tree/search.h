// A node's search for a parent: its original parent at first, another ancestor when the parent has died.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "launch/tree/connection.h"

namespace starling::launch {

/// Tries addresses in order, in rounds. Tries the next address when the last one has failed or been silent for a while, and all of them
/// again while some stay silent. The first daemon that proves the key and accepts this node is selected.
class UplinkSearch {
  public:
    struct FoundParent {
        std::unique_ptr<TreeConnection> connection;  ///< connection to the parent; its handlers must be set
        std::vector<Ancestor> ancestors;             ///< ancestors of this node from now on
    };
    using OnFound = std::function<void(FoundParent)>;
    /// Called when no parent was found; the sentence lists each address and its result.
    using OnFailed = std::function<void(const std::string& sentence)>;

    /// Starts the search at once, and calls one of the callbacks once, from the loop. `candidates` are in order of preference. `patient`:
    /// treat an unreachable network as temporary; otherwise it counts as a refusal.
    UplinkSearch(EventLoop& loop, const TreeCredentials& credentials, const std::vector<Ancestor>& candidates,
                 std::string attach, std::chrono::milliseconds limit, bool patient, OnFound on_found, OnFailed on_failed);
    UplinkSearch(const UplinkSearch&) = delete;
    UplinkSearch& operator=(const UplinkSearch&) = delete;
    ~UplinkSearch();

  private:
    struct ParentCandidate {
        std::string host;
        DaemonAddress endpoint;
        std::string outcome = "no answer; a firewall may drop what is sent to this port";
        int unreachable = 0;  ///< connections that ended with EHOSTUNREACH
    };
    struct Attempt {
        size_t target;
        int fd = -1;  ///< socket whose connect() is in progress; otherwise -1
        std::unique_ptr<TreeConnection> connection;
        bool proved = false;
    };
    using Attempts = std::list<Attempt>;

    void begin_round();
    void next();
    void make_room(size_t target);
    void try_target(size_t target);
    void on_connected(Attempts::iterator attempt);
    void converse(Attempts::iterator attempt);
    void query_next();
    void on_frame(Attempts::iterator attempt, TreeFrameKind kind, const std::string& body);
    void not_connected(Attempts::iterator attempt, int error);
    void failed(Attempts::iterator attempt, const std::string& why, bool final);
    void set_aside(Attempts::iterator attempt);
    void round_over();
    void abandon();
    std::string sentence() const;

    EventLoop& loop_;
    TreeCredentials credentials_;
    std::string attach_;
    EventLoop::Clock::time_point deadline_;
    bool patient_;
    OnFound on_found_;
    OnFailed on_failed_;
    std::vector<ParentCandidate> targets_;
    Attempts attempts_;
    const Attempt* asked_ = nullptr;  ///< the attempt to which the Attach was sent
    bool ended_ = false;
    bool hopeless_ = true;  ///< true: each address tried in this round has refused for good, so no further round is made
    size_t next_ = 0;
    EventLoop::TimerId stagger_ = 0, limit_ = 0;
    std::vector<std::unique_ptr<TreeConnection>> graves_;
};

}  // namespace starling::launch
