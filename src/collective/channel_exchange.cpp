#include "collective/channel_exchange.h"

#include <map>
#include <utility>
#include <vector>

#include "message/point_to_point.h"

namespace starling::collective {

namespace {

// The communicator's collective channel numbers the participants as an exchange does.
class CommExchange final : public Exchange, public comm::CollectiveState {
  public:
    explicit CommExchange(comm::Comm& comm) : channel_(comm.collective) {
        rank = channel_.my_rank();
        local_size = comm.size;
        remote_size = comm.is_inter ? comm.peer_count : 0;
        local_base = comm.local_first ? 0 : remote_size;
        remote_base = comm.is_inter && comm.local_first ? local_size : 0;
        size = local_size + remote_size;
    }

    void start_send(message::SendRequest& request, const void* buffer, int64_t count, const datatype::Datatype& type,
                    int destination, int tag) override {
        message::start_send(request, channel_, buffer, count, type, destination, tag, message::Mode::standard);
    }
    void start_receive(message::ReceiveRequest& request, void* buffer, int64_t count, const datatype::Datatype& type,
                       int source, int tag) override {
        message::start_receive(request, channel_, buffer, count, type, source, tag);
    }

    const HostMap* hosts() override {
        if (!hosts_known_) [[unlikely]]
            find_hosts();
        return hosts_.leaders.empty() ? nullptr : &hosts_;
    }

    NodeOwner stage;

  private:
    void find_hosts();

    message::Channel& channel_;
    HostMap hosts_;
    bool hosts_known_ = false;
};

// All members must come to the same map, so nothing counts but what all of them know: the ids in the host tables, or,
// of jobs whose tables fill on demand, the place in the table.
void CommExchange::find_hosts() {
    hosts_known_ = true;
    std::map<std::pair<const link::Job*, job::HostId>, int> numbers;
    std::vector<int> identity;
    for (int i = 0; i < local_size; ++i) {
        const link::Process& process = channel_.roster().at(local_base + i);
        if (process.job->map() != MPI_SUCCESS) return;
        const job::JobSegment& segment = process.job->segment();
        const uint32_t host = segment.host_of(process.rank);
        const bool open = segment.header().hosts_open;
        const std::pair key(open ? process.job : nullptr, open ? host : segment.host(host).id);
        identity.push_back(numbers.emplace(key, static_cast<int>(numbers.size())).first->second);
    }
    hosts_ = make_host_map(identity, local_base, rank - local_base);
}

CommExchange& comm_exchange(comm::Comm& comm) {
    if (!comm.collective_state) comm.collective_state = std::make_unique<CommExchange>(comm);
    return static_cast<CommExchange&>(*comm.collective_state);
}

}  // namespace

Exchange& exchange_of(comm::Comm& comm) { return comm_exchange(comm); }

NodeOwner& stage_of(comm::Comm& comm) { return comm_exchange(comm).stage; }

TaggedExchange::TaggedExchange(message::Channel& channel, std::vector<int> ranks, int me, int tag)
    : channel_(channel), ranks_(std::move(ranks)), tag_(tag) {
    size = local_size = static_cast<int>(ranks_.size());
    rank = me;
}

void TaggedExchange::start_send(message::SendRequest& request, const void* buffer, int64_t count,
                                const datatype::Datatype& type, int destination, int) {
    message::start_send(request, channel_, buffer, count, type, ranks_[static_cast<size_t>(destination)], tag_,
                        message::Mode::standard);
}

void TaggedExchange::start_receive(message::ReceiveRequest& request, void* buffer, int64_t count,
                                   const datatype::Datatype& type, int source, int) {
    message::start_receive(request, channel_, buffer, count, type, ranks_[static_cast<size_t>(source)], tag_);
}

}  // namespace starling::collective
