// Where ranks on other hosts listen: asks the daemons there, answers theirs, keeps the jobs' address tables.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "launch/event_loop.h"
#include "launch/job.h"
#include "launch/order.h"
#include "launch/superior.h"

namespace starling::launch {

class Launcher;

/// One per host. A question names one rank but is answered for all ranks of its host, since who talks to one of them
/// will often talk to the next. It waits at the rank's host until that rank has a port, or will never have one.
class Locator {
  public:
    using Send = std::function<void(uint32_t tree_host, const Order& order)>;

    Locator(Launcher& launcher, uint32_t self, Send send);
    Locator(const Locator&) = delete;
    Locator& operator=(const Locator&) = delete;
    ~Locator();

    /// A rank of this host wants to know; `job` is the other's.
    void locate(Job& job, uint32_t rank, Superior::Answer answer);
    /// A rank of this host has given up one of `job` on another host.
    void tell_given_up(const Job& by, uint32_t by_rank, const Job& job, uint32_t rank);
    /// Order given_up: the rank is told as soon as it has read what it was told before.
    void on_given_up(const Order& order);
    /// Orders want_ports and ports.
    void on_question(uint32_t from, const Order& order);
    void on_answer(const Order& order);
    /// No one answers for this job any more: its state tells all there is.
    void forget(boot::JobId job);
    /// The same for some of its ranks.
    void forget(boot::JobId job, const std::vector<uint32_t>& ranks);

  private:
    struct Question {
        uint32_t from;
        boot::JobId job;
        uint32_t rank;
    };

    bool answer_question(const Question& question);
    bool leave_notice(const Order& notice);
    void look_again_soon();
    void look_again();
    void reply(boot::JobId job, uint32_t rank, const Superior::Answer& answer, uint32_t looks = 0) const;

    Launcher& launcher_;
    uint32_t self_;
    Send send_;
    std::map<std::pair<boot::JobId, uint32_t>, std::vector<Superior::Answer>> asked_;  ///< by ranks here
    std::vector<Question> open_;                                                     ///< by other hosts
    std::vector<Order> notices_;  ///< given_up, for ranks that have not read an earlier one
    EventLoop::TimerId timer_ = 0;
    std::chrono::milliseconds pause_{1};
};

}  // namespace starling::launch
