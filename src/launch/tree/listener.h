// Listens for the daemons below this one. Any program can connect, so unauthenticated connections are limited in number, time and bytes.
#pragma once

#include <functional>
#include <list>
#include <memory>

#include "launch/tree/connection.h"

namespace starling::launch {

class TreeListener {
  public:
    /// Receives an authenticated connection, whose handlers must be set.
    using OnPeer = std::function<void(std::unique_ptr<TreeConnection>)>;

    TreeListener(EventLoop& loop, const TreeCredentials& credentials, OnPeer on_peer)
        : loop_(loop), credentials_(credentials), on_peer_(std::move(on_peer)) {}
    TreeListener(const TreeListener&) = delete;
    TreeListener& operator=(const TreeListener&) = delete;
    ~TreeListener();

    /// Listens on ports that the kernel chooses, with one socket for each address of this machine that `filter` admits (own_addresses()).
    /// Returns an MPI error class and sets failure_text() on failure.
    int open(const std::string& filter);
    bool is_open() const { return !sockets_.empty(); }
    const std::vector<DaemonAddress>& endpoints() const { return endpoints_; }
    /// Returns the number of connections that are not authenticated yet.
    size_t unauthenticated() const { return unauthenticated_.size(); }

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
    std::vector<DaemonAddress> endpoints_;
    std::list<Stranger> unauthenticated_;                  ///< connections that are not authenticated yet, oldest first
    std::vector<std::unique_ptr<TreeConnection>> graves_;  ///< connections that were closed within their own handlers
    EventLoop::TimerId expiry_ = 0, burial_ = 0;
};

}  // namespace starling::launch
