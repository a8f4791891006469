// The launcher's connection to the user's daemon, which stores the published names of all the user's jobs.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "control/control_protocol.h"
#include "launch/common/event_loop.h"

namespace starling::launch {

/// Connects at the first request, and starts the daemon if it does not run. If the daemon is killed, starts another and publishes the names
/// of this launcher's jobs again. When this connection ends, the daemon removes these names.
class NameClient {
  public:
    using NameCallback = std::function<void(const control::NameReply&)>;

    explicit NameClient(EventLoop& loop) : loop_(loop) {}
    NameClient(const NameClient&) = delete;
    NameClient& operator=(const NameClient&) = delete;
    ~NameClient();

    void request(control::MessageKind kind, control::NameRequest request, NameCallback callback);
    void job_ended(job::JobId job);

  private:
    struct Pending {
        control::MessageKind kind;
        control::NameRequest request;
        NameCallback callback;
        int attempts = 0;
    };

    bool connect(std::string& problem);
    bool transmit(Pending& pending);
    void on_readable();
    void on_reply(const control::NameReply& reply);
    void on_lost();
    void fail_all(const std::string& problem);
    void expect_reply();
    void hang_up();

    EventLoop& loop_;
    int fd_ = -1;
    control::FrameDecoder decoder_{control::kMaxFrame};
    std::deque<Pending> pending_;
    std::vector<control::NameRequest> published_;
    EventLoop::TimerId patience_ = 0;  ///< timer, runs while a request is pending
};

/// Connects to the user's daemon; starts it if `may_start`. Returns a blocking descriptor, or -1 with `problem` set.
int connect_daemon(bool may_start, std::string& problem);

}  // namespace starling::launch
