// Where ranks on other hosts listen: asks the daemons there, answers theirs, keeps the jobs' address tables.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "launch/common/event_loop.h"
#include "launch/common/order.h"
#include "launch/process/controller.h"
#include "launch/process/job.h"
#include "launch/tree/host_set.h"
#include "launch/universe/port_search.h"

namespace starling::launch {

class Launcher;

/// One per host. A question names one rank but is answered for all ranks of its host, since who talks to one of them
/// will often talk to the next. It waits at the rank's host until that rank has a port, or will never have one. Who would
/// ask many hosts gets the table of all ports of that job instead, which the root gathers when the first one wants it.
class AddressService {
  public:
    struct Ways {
        std::function<void(uint32_t tree_host, const Order& order)> send;
        /// This host's piece of what several tell the root.
        std::function<void(const Order& topic, std::string_view piece, const HostSet& contributors)> gather;
    };

    AddressService(Launcher& launcher, uint32_t self, Ways ways);
    AddressService(const AddressService&) = delete;
    AddressService& operator=(const AddressService&) = delete;
    ~AddressService();

    /// A rank of this host wants to know; `job` is the other's.
    void locate(Job& job, uint32_t rank, Controller::Answer answer);
    /// A rank of this host has given up one of `job` on another host.
    void tell_given_up(const Job& by, uint32_t by_rank, const Job& job, uint32_t rank);
    /// Order given_up: the rank is told as soon as it has read what it was told before.
    void on_given_up(const Order& order);
    /// Orders want_ports and ports.
    void on_question(uint32_t from, const Order& order);
    void on_answer(const Order& order);
    /// Order gather_ports: tells the root the ports of the ranks here, as soon as all have one, or after a moment.
    void collect(const Job& job, const Order& order);
    /// Order table.
    void on_table(Job& job, const Order& order);
    /// What ranks here have caused of it, for that job.
    void count(job::JobId job, uint32_t& lookups, uint32_t& tables) const;
    /// No one answers for this job any more: its state tells all there is.
    void forget(job::JobId job);
    /// The same for some of its ranks.
    void forget(job::JobId job, const std::vector<uint32_t>& ranks);

  private:
    struct Question {
        uint32_t from;
        job::JobId job;
        uint32_t rank;
    };

    /// The root wants the ports of the ranks here.
    struct Collection {
        job::JobId job;
        uint64_t round;
        HostSet contributors;
        EventLoop::Clock::time_point until;
    };

    void advance(const Job& job, PortSearch& search);
    void send_question(const Job& job, uint32_t rank) const;
    void settle(job::JobId job, uint32_t rank, uint32_t looks = 0);
    void settle(job::JobId job, const std::vector<uint32_t>& ranks);
    void let_more();
    bool answer_collection(const Collection& collection) const;
    bool answer_question(const Question& question);
    bool leave_notice(const Order& notice);
    void look_again_soon();
    void look_again();
    void reply(job::JobId job, uint32_t rank, const Controller::Answer& answer, uint32_t looks = 0) const;

    Launcher& launcher_;
    uint32_t self_;
    Ways ways_;
    std::map<std::pair<job::JobId, uint32_t>, std::vector<Controller::Answer>> asked_;  ///< by ranks here
    std::map<job::JobId, PortSearch> searches_;  ///< of the jobs that ranks here have asked about
    std::vector<Collection> collections_;        ///< not answered yet
    std::vector<Question> open_;                 ///< by other hosts
    std::vector<Order> notices_;                 ///< given_up, for ranks that have not read an earlier one
    EventLoop::TimerId timer_ = 0, more_timer_ = 0;
    std::chrono::milliseconds pause_{1};
};

}  // namespace starling::launch
