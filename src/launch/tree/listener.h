// A daemon's ear for those below it. Anyone may knock: strangers are few at a time, get a few seconds and a few
// bytes, and disturb nobody.
#pragma once

#include <functional>
#include <list>
#include <memory>

#include "launch/tree/connection.h"

namespace starling::launch {

class TreeListener {
  public:
    /// Given a connection whose other end has proved to hold the key; its handlers are to be set.
    using OnPeer = std::function<void(std::unique_ptr<TreeConnection>)>;

    TreeListener(EventLoop& loop, const TreeCredentials& credentials, OnPeer on_peer)
        : loop_(loop), credentials_(credentials), on_peer_(std::move(on_peer)) {}
    TreeListener(const TreeListener&) = delete;
    TreeListener& operator=(const TreeListener&) = delete;
    ~TreeListener();

    /// Listens on ports that the kernel chooses, one socket for each of this machine's addresses that `filter` lets
    /// through (own_addresses()). An MPI error class with failure_text().
    int open(const std::string& filter);
    bool is_open() const { return !sockets_.empty(); }
    const std::vector<Endpoint>& endpoints() const { return endpoints_; }
    /// Connections that have not proved anything yet.
    size_t strangers() const { return strangers_.size(); }

    static constexpr size_t kMaxStrangers = 128;
    static constexpr std::chrono::seconds kTimeToProve{5};

  private:
    struct Stranger {
        std::unique_ptr<TreeConnection> connection;
        EventLoop::Clock::time_point since;
    };

    int listen_on(const std::string& address);
    void on_connect(int listener);
    void admit(int fd);
    void drop(std::list<Stranger>::iterator stranger);
    void expire();
    void bury();

    EventLoop& loop_;
    TreeCredentials credentials_;
    OnPeer on_peer_;
    std::vector<int> sockets_;
    std::vector<Endpoint> endpoints_;
    std::list<Stranger> strangers_;                        ///< the oldest first
    std::vector<std::unique_ptr<TreeConnection>> graves_;  ///< closed from within their own handlers
    EventLoop::TimerId expiry_ = 0, burial_ = 0, pause_ = 0;
};

}  // namespace starling::launch
