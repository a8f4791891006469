// Finds the ports on which ranks on other hosts listen: asks the host agents there, answers their questions, and maintains the jobs' port
// tables.
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

/// The service of one host. A question names one rank, but the answer has all ranks of its host, since a process that communicates with one
/// of them will often communicate with the next.
///
/// The question waits at the rank's host until that rank has a port, or will never have one. Instead of asking many hosts, the service gets
/// the table of all ports of the job, which the root gathers at the first request.
class AddressService {
  public:
    struct Ways {
        std::function<void(uint32_t tree_host, const HostOrder& order)> send;
        /// Sends this host's piece of a gathered order to the root.
        std::function<void(const HostOrder& topic, std::string_view piece, const HostSet& contributors)> gather;
    };

    AddressService(Launcher& launcher, uint32_t self, Ways ways);
    AddressService(const AddressService&) = delete;
    AddressService& operator=(const AddressService&) = delete;
    ~AddressService();

    /// Finds the port of `rank` of `job` for a rank of this host, and calls `answer`.
    void locate(LocalJob& job, uint32_t rank, Controller::ReplyCallback answer);
    /// Notifies the host of `rank` of `job` that `by_rank` of `by`, a rank of this host, no longer waits for it.
    void notify_abandoned(const LocalJob& by, uint32_t by_rank, const LocalJob& job, uint32_t rank);
    /// Handles an `abandoned` order: notifies the rank that its peer no longer waits for it, once the rank has read its previous notice.
    void on_abandoned(const HostOrder& order);
    /// Handle the orders `want_ports` (a question of another host) and `ports` (the answer).
    void on_question(uint32_t from, const HostOrder& order);
    void on_answer(const HostOrder& order);
    /// Handles the order `gather_ports`: sends the ports of the ranks here to the root, as soon as all have one, or after a short wait.
    void collect(const LocalJob& job, const HostOrder& order);
    /// Handles the order `table`: stores the ports of all hosts in the job's segment, and answers the ranks that wait for them.
    void on_table(LocalJob& job, const HostOrder& order);
    /// Sets the numbers of lookups and table requests that ranks of this host have caused for `job`.
    void count(job::JobId job, uint32_t& lookups, uint32_t& tables) const;
    /// Ends all port searches for this job, because no host answers questions about it any more. The ranks read the job's state from its
    /// segment.
    void forget(job::JobId job);
    /// Ends the searches for these ranks of the job.
    void forget(job::JobId job, const std::vector<uint32_t>& ranks);

  private:
    struct AddressRequest {
        uint32_t from;
        job::JobId job;
        uint32_t rank;
    };

    /// A request of the root for the ports of the ranks here.
    struct Collection {
        job::JobId job;
        uint64_t round;
        HostSet contributors;
        EventLoop::Clock::time_point until;
    };

    void advance(const LocalJob& job, PortSearch& search);
    void send_question(const LocalJob& job, uint32_t rank) const;
    void settle(job::JobId job, uint32_t rank, uint32_t looks = 0);
    void settle(job::JobId job, const std::vector<uint32_t>& ranks);
    void start_more();
    bool answer_collection(const Collection& collection) const;
    bool answer_question(const AddressRequest& question);
    bool leave_notice(const HostOrder& notice);
    void check_again_soon();
    void check_again();
    void reply(job::JobId job, uint32_t rank, const Controller::ReplyCallback& answer, uint32_t looks = 0) const;

    Launcher& launcher_;
    uint32_t self_;
    Ways ways_;
    /// Requests of ranks on this host that are not answered yet, by the rank whose port they ask for.
    std::map<std::pair<job::JobId, uint32_t>, std::vector<Controller::ReplyCallback>> asked_;
    std::map<job::JobId, PortSearch> searches_;  ///< searches by the job that ranks of this host have asked about
    std::vector<Collection> collections_;        ///< requests of the root (gather_ports) that are not answered yet
    std::vector<AddressRequest> open_;           ///< questions of other hosts that are not answered yet
    std::vector<HostOrder> notices_;             ///< `abandoned` orders whose rank has not read its previous notice yet
    EventLoop::TimerId timer_ = 0, more_timer_ = 0;
    std::chrono::milliseconds pause_{1};
};

}  // namespace starling::launch
