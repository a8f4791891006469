#include "collective/channel_exchange.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/saved_failure.h"
#include "collective/core/buffers.h"
#include "collective/multicast_channel.h"
#include "collective/survivors/agreements.h"
#include "comm/member_hosts.h"
#include "message/error_marker.h"
#include "message/point_to_point.h"
#include "progress/flag_wait.h"

namespace starling::collective {

namespace {

// A communicator's exchange. The participants' numbers are the ranks of the communicator's collective channel.
class CommExchange final : public Exchange, public comm::CollectiveState {
  public:
    ~CommExchange() override;
    explicit CommExchange(comm::Comm& comm) : comm_(comm), channel_(comm.collective) {
        rank = channel_.my_rank();
        local_size = comm.size;
        remote_size = comm.is_inter ? comm.peer_count : 0;
        local_base = comm.local_first ? 0 : remote_size;
        remote_base = comm.is_inter && comm.local_first ? local_size : 0;
        size = local_size + remote_size;
        if (channel_.revoked()) stage.revoke();
        if (steers() && !comm.is_inter && is_of_one_job()) steering_ = std::make_unique<AlgorithmOverride>();
    }

    void start_send(message::SendRequest& request, const void* buffer, int64_t count, const datatype::Datatype& type,
                    int destination, int tag) override {
        request.of_all = true;
        message::start_send(request, channel_, buffer, count, type, destination, tag, message::SendMode::standard);
    }
    void start_receive(message::ReceiveRequest& request, void* buffer, int64_t count, const datatype::Datatype& type,
                       int source, int tag) override {
        // After a member has failed, the others may have taken different paths, depending on when they learned of it. A receive from a
        // living member might then never complete, so it is abandoned too.
        request.of_all = true;
        message::start_receive(request, channel_, buffer, count, type, source, tag);
    }

    void start_marker(message::SendRequest& request, const message::ErrorMarker& marker, int64_t bytes, int destination,
                      int tag) override {
        request.of_all = true;
        message::start_eager_send(request, channel_, &marker, bytes, byte_type(), destination, tag);
    }

    bool withdraw(message::ReceiveRequest& request) override { return message::cancel_receive(request); }
    void throw_away(uint64_t bytes, int source, int tag) override;
    void revoke() override { stage.revoke(); }

    Cast* cast(int tag) override { return ChannelCast::pays_for_short(comm_, leading_hosts()) ? channel_cast(tag) : nullptr; }
    Cast* turns(int tag) override { return may_take_turns() ? channel_cast(tag) : nullptr; }
    Cast* channel_cast(int tag) {
        // The result must not depend on whether the multicast channel exists already, because members reach this point at different times.
        if (cast_tried_) return tag < first_cast_ ? nullptr : cast_.get();
        if (!ChannelCast::may_exist(comm_)) return nullptr;
        first_cast_ = ChannelCast::first_call(comm_, is_of_one_job());
        return tag < first_cast_ ? nullptr : make_cast();
    }
    /// Returns whether long calls may take turns. In jobs that go on after deaths, members that have learned of a death and others could
    /// take different ways (docs/multicast.md, "What is missing").
    bool may_take_turns() {
        if (!ChannelCast::may_exist(comm_)) return false;
        if (!may_take_turns_) may_take_turns_ = !link::self().job->segment().header().recovers && is_of_one_job();
        return *may_take_turns_;
    }
    bool each_has_its_host() override { return !hosts() && alone_; }
    ChannelCast* made_cast() const { return cast_.get(); }

    int ended() override {
        for (int i = 0; i < size; ++i)
            if (link::has_ended(channel_.roster().at(i))) return i;
        return -1;
    }

    const HostMap* hosts() override {
        if (!hosts_known_) [[unlikely]]
            find_hosts();
        return hosts_.leaders.empty() ? nullptr : &hosts_;
    }

    NodeOwner stage;

  private:
    /// Returns whether all participants belong to this process's job, and so have the same settings.
    bool is_of_one_job() const {
        int i = 0;
        while (i < size && channel_.roster().at(i).job == link::self().job) ++i;
        return i == size;
    }
    void find_hosts();
    /// Returns the number of hosts with a leader each; 0 if this side is on one host.
    size_t leading_hosts() {
        const HostMap* const map = hosts();
        return map ? map->leaders.size() : alone_ ? static_cast<size_t>(local_size) : 0;
    }
    Cast* make_cast();

    comm::Comm& comm_;
    message::MatchContext& channel_;
    HostMap hosts_;
    bool hosts_known_ = false;
    bool alone_ = false;                  ///< whether there are several hosts, each with one participant
    std::optional<bool> may_take_turns_;  ///< empty: not known yet
    bool cast_tried_ = false;
    int first_cast_ = 0;  ///< number of the first call that may use multicast; only with `cast_tried_`
    std::unique_ptr<ChannelCast> cast_;

    /// A receive whose message is discarded, with its buffer.
    struct Waste {
        std::unique_ptr<std::byte[]> memory;
        message::ReceiveRequest request;
    };
    std::vector<std::unique_ptr<Waste>> waste_;
};

void CommExchange::throw_away(uint64_t bytes, int source, int tag) {
    // A process that has ended sends no message to be discarded.
    if (message::sender_ended(channel_, source)) return;
    // Save the text of the error that is being reported: start_receive() sets another one if it fails, or an operation that it advances.
    const SavedFailure told;
    std::erase_if(waste_, [](const auto& one) { return one->request.done; });
    auto one = std::make_unique<Waste>();
    one->memory = std::make_unique<std::byte[]>(bytes);
    message::start_receive(one->request, channel_, one->memory.get(), static_cast<int64_t>(bytes),
                           datatype::predefined(MPI_BYTE), source, tag);
    if (!one->request.done) waste_.push_back(std::move(one));
}

CommExchange::~CommExchange() {
    close_agreements(comm_);
    for (auto& one : waste_)
        // If a message is already arriving in this buffer, the receive cannot be cancelled, so the buffer is never freed.
        if (!one->request.done && !message::cancel_receive(one->request)) (void)one.release();
}

void CommExchange::find_hosts() {
    hosts_known_ = true;
    const std::vector<int> numbers = comm::host_numbers(channel_.roster(), local_base, local_size);
    if (numbers.empty()) return;
    hosts_ = make_host_map(numbers, local_base, rank - local_base);
    const int hosts = 1 + *std::max_element(numbers.begin(), numbers.end());
    alone_ = hosts > 1 && hosts == local_size;
}

Cast* CommExchange::make_cast() {
    cast_tried_ = true;
    const HostMap* const map = hosts();
    if (leading_hosts() < ChannelCast::kFewest) return nullptr;
    if (map) {
        cast_ = std::make_unique<ChannelCast>(comm_, map->leaders, map->leads() ? map->my_host : -1);
    } else {
        std::vector<int> all(static_cast<size_t>(local_size));
        std::iota(all.begin(), all.end(), local_base);
        cast_ = std::make_unique<ChannelCast>(comm_, all, rank - local_base);
    }
    return cast_.get();
}

CommExchange& comm_exchange(comm::Comm& comm) {
    if (!comm.collective_state) comm.collective_state = std::make_unique<CommExchange>(comm);
    return static_cast<CommExchange&>(*comm.collective_state);
}

}  // namespace

Exchange& exchange_of(comm::Comm& comm) { return comm_exchange(comm); }

NodeOwner& stage_of(comm::Comm& comm) { return comm_exchange(comm).stage; }

namespace {

// Waits until the communicator's multicast channel has settled (multicast::settled). The leaders' answers arrive by polls.
Task settle_cast(const ChannelCast& cast) {
    co_await progress::FlagAwaiter([&cast] { return cast.settled(); });
    co_return MPI_SUCCESS;
}

}  // namespace

Task open_cast(comm::Comm& comm) {
    if (ChannelCast::first_call(comm, true) > 0 || comm.size == 1) return Task::completed(MPI_SUCCESS);
    CommExchange& exchange = comm_exchange(comm);
    exchange.turns(0);
    const ChannelCast* cast = exchange.made_cast();
    return cast && !cast->settled() ? settle_cast(*cast) : Task::completed(MPI_SUCCESS);
}

PlanExchange::PlanExchange(comm::Comm& comm) : Exchange(exchange_of(comm)), all_(exchange_of(comm)) {
    one_tag_ = all_.draw_plan_tag();
}

TaggedExchange::TaggedExchange(message::MatchContext& channel, std::vector<int> ranks, int me, int tag, bool of_all)
    : channel_(channel), ranks_(std::move(ranks)), tag_(tag), of_all_(of_all) {
    size = local_size = static_cast<int>(ranks_.size());
    rank = me;
}

void TaggedExchange::start_send(message::SendRequest& request, const void* buffer, int64_t count,
                                const datatype::Datatype& type, int destination, int tag) {
    request.of_all = of_all_;
    message::start_send(request, channel_, buffer, count, type, ranks_[static_cast<size_t>(destination)], tag_of(tag),
                        message::SendMode::standard);
}

void TaggedExchange::start_marker(message::SendRequest& request, const message::ErrorMarker& marker, int64_t bytes,
                                  int destination, int tag) {
    request.of_all = of_all_;
    message::start_eager_send(request, channel_, &marker, bytes, byte_type(), ranks_[static_cast<size_t>(destination)],
                              tag_of(tag));
}

void TaggedExchange::start_receive(message::ReceiveRequest& request, void* buffer, int64_t count,
                                   const datatype::Datatype& type, int source, int tag) {
    request.of_all = of_all_;
    message::start_receive(request, channel_, buffer, count, type, ranks_[static_cast<size_t>(source)], tag_of(tag));
}

// Does nothing. With `of_all`, a death abandons sends as well as receives, and arriving messages are dropped with the channel. Without it
// no operation discards messages, because a TaggedExchange has no multicast.
void TaggedExchange::throw_away(uint64_t, int, int) {
    if (!of_all_)
        panic("only an operation that ends when any member fails may discard a message: report this as a bug of Starling");
}

bool TaggedExchange::withdraw(message::ReceiveRequest& request) { return message::cancel_receive(request); }

}  // namespace starling::collective
