// The host agent: carries out the root's orders on one host, and reports to the root.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "launch/common/order.h"
#include "launch/process/controller.h"
#include "launch/process/launcher.h"
#include "launch/universe/address_service.h"

namespace starling::launch {

/// The agent of one host of a universe; the root's own host has one too.
class HostAgent : public Controller {
  public:
    /// Sends an encoded order to a host of the tree. `bulk`: other orders may overtake it.
    using SendOrder = std::function<void(uint32_t tree_host, std::string payload, bool bulk)>;

    /// Sends this host's piece of an order that `contributors` report together (Tree::gather).
    using Gather = std::function<void(const HostOrder& topic, std::string_view piece, const HostSet& contributors, bool bulk)>;

    /// Creates the agent, which becomes the launcher's Controller. `self`: this host's number in the tree; the root has 0.
    HostAgent(Launcher& launcher, uint32_t self, SendOrder send, Gather gather);
    HostAgent(const HostAgent&) = delete;
    HostAgent& operator=(const HostAgent&) = delete;
    ~HostAgent() override;

    /// Handles an order from the root or from another host agent.
    void on_order(uint32_t from, std::string_view payload);
    /// Kills all processes of jobs on this host, because the root ends or cannot be reached.
    void end_everything();

    void failed(LocalJob& job, const RankFailure& failure) override;
    void absent(LocalJob& job, uint32_t rank, const std::string& sentence) override;
    void on_all_ended(LocalJob& job) override;
    bool forward_request(LocalJob& job, uint32_t rank, control::MessageKind kind, const std::string& payload,
                         ReplyCallback answer) override;

  private:
    void start(const HostOrder& order);
    void make_stub(const HostOrder& order);
    void all_arrived(LocalJob& job);
    void ranks_failed(LocalJob& job, const HostOrder& order);
    void on_job_order(LocalJob& job, HostOrder& order);
    void on_answer(HostOrder& order);
    void request_from_root(LocalJob& job, uint32_t rank, control::MessageKind kind, const std::string& payload,
                           ReplyCallback answer);
    bool find(LocalJob& job, uint32_t rank, control::MessageKind kind, const std::string& payload, ReplyCallback answer);
    void send_order(const HostOrder& order, bool bulk = false);
    void report_arrival(LocalJob& job, bool at_once = false);
    static bool have_all_arrived(const LocalJob& job);

    Launcher& launcher_;
    uint32_t self_;
    SendOrder send_;
    Gather gather_;
    AddressService locator_;
    std::unordered_map<uint64_t, ReplyCallback> asked_;                          ///< pending requests to the root, by token
    std::unordered_map<job::JobId, std::vector<ReplyCallback>> being_resolved_;  ///< pending requests for a job, by its id
    uint64_t last_token_ = 0;
};

}  // namespace starling::launch
