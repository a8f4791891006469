// The universe's root as it acts on one host: does there what it orders, and tells it what happens there.
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

/// One per host of a universe, the root's own included.
class HostAgent : public Controller {
  public:
    /// Carries an encoded order to a host of the tree. `bulk`: may be overtaken by others.
    using Send = std::function<void(uint32_t tree_host, std::string payload, bool bulk)>;

    /// Gives the root this host's piece of what `contributors` tell together (Tree::gather).
    using Gather = std::function<void(const Order& topic, std::string_view piece, const HostSet& contributors, bool bulk)>;

    /// Becomes the launcher's superior. `self`: this host's number in the tree; the root has 0.
    HostAgent(Launcher& launcher, uint32_t self, Send send, Gather gather);
    HostAgent(const HostAgent&) = delete;
    HostAgent& operator=(const HostAgent&) = delete;
    ~HostAgent() override;

    /// From the root, or another host's deputy.
    void on_order(uint32_t from, std::string_view payload);
    /// The root is gone or ends: all processes here are killed.
    void end_everything();

    void failed(Job& job, const Failure& failure) override;
    void absent(Job& job, uint32_t rank, const std::string& sentence) override;
    void all_gone(Job& job) override;
    bool ask(Job& job, uint32_t rank, control::MessageKind kind, const std::string& payload, Answer answer) override;

  private:
    void start(const Order& order);
    void make_stub(const Order& order);
    void all_arrived(Job& job);
    void ranks_failed(Job& job, const Order& order);
    void on_job_order(Job& job, Order& order);
    void on_answer(Order& order);
    void ask_root(Job& job, uint32_t rank, control::MessageKind kind, const std::string& payload, Answer answer);
    bool find(Job& job, uint32_t rank, control::MessageKind kind, const std::string& payload, Answer answer);
    void tell(const Order& order, bool bulk = false);
    void tell_arrival(Job& job, bool at_once = false);
    static bool have_all_arrived(const Job& job);

    Launcher& launcher_;
    uint32_t self_;
    Send send_;
    Gather gather_;
    AddressService locator_;
    std::unordered_map<uint64_t, Answer> asked_;                          ///< by token
    std::unordered_map<job::JobId, std::vector<Answer>> being_resolved_;  ///< one question for all who ask
    uint64_t last_token_ = 0;
};

}  // namespace starling::launch
