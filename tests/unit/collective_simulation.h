// A simulated exchange: all participants of a collective operation in one process. The test chooses the order in which messages are
// delivered.
#pragma once

#include <coroutine>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "collective/collective_request.h"
#include "collective/core/exchange.h"
#include "collective/core/multicast_sender.h"
#include "collective/core/view.h"
#include "datatype/datatype.h"
#include "message/error_marker.h"
#include "progress/coroutine_queue.h"

namespace simulation {

using starling::collective::Exchange;
using starling::collective::Task;
using starling::collective::View;
using starling::datatype::Datatype;
namespace datatype = starling::datatype;
namespace message = starling::message;

/// Makes every choice of a simulation: at random, or so that repeated runs try all possibilities.
class Chooser {
  public:
    explicit Chooser(uint64_t seed) : random_(seed), exhaustive_(false) {}
    Chooser() : random_(0), exhaustive_(true) {}

    /// Returns a number below n.
    size_t pick(size_t n) {
        if (n <= 1) return 0;
        if (!exhaustive_) return std::uniform_int_distribution<size_t>(0, n - 1)(random_);
        if (depth_ == path_.size()) path_.push_back({0, n});
        return path_[depth_++].choice;
    }
    /// Prepares the next possibility; returns false if all have been tried.
    bool next() {
        depth_ = 0;
        while (!path_.empty() && path_.back().choice + 1 == path_.back().of) path_.pop_back();
        if (path_.empty()) return false;
        ++path_.back().choice;
        return true;
    }

  private:
    struct Step {
        size_t choice, of;
    };
    std::mt19937_64 random_;
    bool exhaustive_;
    std::vector<Step> path_;
    size_t depth_ = 0;
};

class World {
  public:
    /// `first` of the n participants form one side of an inter-communicator; 0: an intra-communicator.
    World(Chooser& chooser, int n, int first = 0) : chooser_(chooser), participants_(static_cast<size_t>(n)) {
        for (int i = 0; i < n; ++i) {
            auto& p = participants_[static_cast<size_t>(i)];
            p = std::make_unique<Participant>(*this);
            p->size = n;
            p->rank = i;
            const bool low = first == 0 || i < first;
            p->local_base = low ? 0 : first;
            p->local_size = first == 0 ? n : low ? first : n - first;
            p->remote_base = first == 0 || !low ? 0 : first;
            p->remote_size = first == 0 ? 0 : n - p->local_size;
        }
    }

    /// Largest send in bytes that may complete before it is received.
    uint64_t eager_limit = 64;
    /// Participants that never take part; messages to and from them fail.
    std::set<int> dead;
    /// How many of every two messages from a leader to all other leaders use the multicast group. Negative: there are no groups.
    int to_group = -1;
    /// Participants that received the messages of dead participants before the latter died: through the group, or by single messages.
    std::set<int> reached_by_group, reached_by_message;
    /// Count of messages sent through groups, and their senders in the order of sending.
    int64_t grouped = 0;
    std::vector<int> group_senders;
    /// Number (in order of delivery) of the message that arrives too long; -1: none.
    int64_t truncated = -1;
    /// Number of the first message that fails. All later ones fail too, with all requests that wait for them. -1: none.
    int64_t fails_from = -1;
    /// Error text of each participant.
    std::map<int, std::string> sentences;
    static std::string sentence_of(int error_class) { return "a request failed with class " + std::to_string(error_class); }

    Exchange& exchange(int participant) { return *participants_[static_cast<size_t>(participant)]; }
    int64_t delivered() const { return delivered_; }

    /// Runs one task per participant, `operations` times in sequence. Returns each participant's first error, or {-1} on deadlock.
    std::vector<int> run(const std::function<Task(int participant, View view)>& make, int operations = 1) {
        const int n = static_cast<int>(participants_.size());
        requests_.clear();
        requests_.resize(participants_.size());
        std::vector<int> started(participants_.size(), 0), errors(participants_.size(), MPI_SUCCESS);
        for (;;) {
            starling::progress::run_ready();
            std::vector<std::function<void()>> events;
            bool all_done = true;
            for (int i = 0; i < n; ++i) {
                const auto at = static_cast<size_t>(i);
                if (dead.count(i)) continue;
                if (requests_[at] && !requests_[at]->done) {
                    all_done = false;
                    continue;
                }
                if (requests_[at]) {
                    if (errors[at] == MPI_SUCCESS && (errors[at] = starling::progress::error_of(*requests_[at])))
                        sentences[i] = starling::failure_text();
                    requests_[at].reset();
                }
                if (started[at] == operations) continue;
                all_done = false;
                events.push_back([&, i, at] {
                    ++started[at];
                    requests_[at] = std::make_unique<starling::collective::CollectiveRequest>();
                    View view = View::all(exchange(i));
                    view.blocking = true;
                    starling::collective::start(make(i, view), *requests_[at]);
                });
            }
            if (all_done) return errors;
            for (auto& [key, cast] : casts_)
                for (auto& [to, receive] : cast.receives)
                    if (cast.sent)
                        events.push_back([&, number = to] { deliver(cast, number); });
                    else if (dead.count(leader(std::get<0>(key), std::get<1>(key))))
                        events.push_back(
                            [&cast, number = to] { fail(*cast.receives.extract(number).mapped(), MPI_ERR_PROC_ABORTED); });
            for (auto& [key, pair] : pairs_)
                if (!pair.sends.empty() && !pair.receives.empty()) events.push_back([&] { deliver(pair); });
            if (events.empty()) return {-1};
            events[chooser_.pick(events.size())]();
        }
    }

    /// Places the participants on hosts; host_of holds the host of each, numbered in any way.
    void spread(const std::vector<int>& host_of) {
        for (auto& p : participants_) {
            const auto first = host_of.begin() + p->local_base;
            p->alone =
                std::set<int>(first, first + p->local_size).size() == static_cast<size_t>(p->local_size) && p->local_size > 1;
            p->map =
                starling::collective::make_host_map({first, first + p->local_size}, p->local_base, p->rank - p->local_base);
        }
    }

    /// Returns the number of messages that were sent or expected but never matched. A group message counts until all but its sender
    /// received it.
    size_t left_over() const {
        size_t count = 0;
        for (auto& [key, cast] : casts_) count += cast.receives.size() + (cast.sent && cast.left > 0 ? 1 : 0);
        for (auto& [key, pair] : pairs_) count += pair.sends.size() + pair.receives.size();
        return count;
    }

  private:
    struct PendingSend {
        message::SendRequest* request;  ///< the send's request; null: the send is eager and has completed
        std::vector<std::byte> data;    ///< bytes of an eager send
        const void* buffer;
        int64_t count;
        const Datatype* type;
    };
    struct PendingReceive {
        message::ReceiveRequest* request;
        void* buffer;
        int64_t count;
        const Datatype* type;
    };
    struct Pair {
        std::deque<PendingSend> sends;
        std::deque<PendingReceive> receives;
    };

    /// The message that one leader of a side sends to the group in one call.
    struct Sent {
        std::map<int, starling::multicast::MulticastReceive*> receives;  ///< posted receives, by leader
        std::vector<std::byte> data;
        bool sent = false;
        int left = 0;  ///< number of leaders that have not received the message
    };

    struct Leaders : starling::collective::Cast {
        explicit Leaders(World& w) : world(w) {}
        World& world;
        int side = 0, me = 0, n = 0;
        Sent& at(int sender, uint64_t call) { return world.casts_[{side, sender, call}]; }

        bool is_ready() const override { return world.to_group > 0; }
        starling::collective::WayMeter& ways(bool among_leaders) override { return meters[among_leaders]; }
        starling::collective::WayMeter meters[2];
        bool start_send(starling::multicast::MulticastSend& send, uint64_t call, const void* data, uint64_t bytes) override {
            if (static_cast<int>(world.chooser_.pick(2)) >= world.to_group) return false;
            Sent& sent = at(me, call);
            if (sent.sent) std::abort();  // each call number is used for one message only
            const auto* begin = static_cast<const std::byte*>(data);
            sent.data.assign(begin, begin + bytes);
            sent.sent = true;
            for (int i = 0; i < n; ++i) sent.left += i != me && !world.dead.count(world.leader(side, i));
            ++world.grouped;
            world.group_senders.push_back(me);
            send.complete();
            return true;
        }
        void start_receive(starling::multicast::MulticastReceive& receive, int sender, uint64_t call, void* memory,
                           uint64_t bytes) override {
            receive.memory = static_cast<std::byte*>(memory);
            receive.bytes = bytes;
            receive.sender = static_cast<uint32_t>(sender);
            receive.call = call;
            if (world.dead.count(world.leader(side, sender))) {
                if (world.reached_by_group.count(world.leader(side, me))) {
                    receive.outcome.bytes = bytes;
                    return receive.complete();
                }
                // The test's choice decides whether the failure is noticed now or later.
                if (world.chooser_.pick(2)) return World::fail(receive, MPI_ERR_PROC_ABORTED);
            }
            at(sender, call).receives[me] = &receive;
        }
        bool withdraw(starling::multicast::MulticastReceive& receive) override {
            if (receive.done) return false;
            at(static_cast<int>(receive.sender), receive.call).receives.erase(me);
            return true;
        }
        void refuse(starling::multicast::MulticastReceive& receive) override {
            if (withdraw(receive)) --at(static_cast<int>(receive.sender), receive.call).left;
        }
    };

    struct Participant : Exchange {
        explicit Participant(World& w) : world(w), leaders(w) {}
        World& world;
        starling::collective::HostMap map;
        Leaders leaders;
        bool alone = false;
        const starling::collective::HostMap* hosts() override { return map.leaders.empty() ? nullptr : &map; }
        bool each_has_its_host() override { return alone; }
        starling::collective::Cast* cast(int) override {
            if (world.to_group < 0 || (!alone && map.leaders.empty())) return nullptr;
            leaders.side = local_base;
            leaders.me = alone ? rank - local_base : map.leads() ? map.my_host : -1;
            leaders.n = alone ? local_size : static_cast<int>(map.leaders.size());
            return &leaders;
        }
        starling::collective::Cast* turns(int tag) override { return cast(tag); }
        bool withdraw(message::ReceiveRequest& request) override { return world.withdraw(request); }
        void throw_away(uint64_t bytes, int source, int tag) override {
            Waste& one = world.waste_.emplace_back();
            one.memory.resize(bytes);
            start_receive(one.request, one.memory.data(), static_cast<int64_t>(bytes), datatype::predefined(MPI_BYTE), source,
                          tag);
        }
        void start_send(message::SendRequest& request, const void* buffer, int64_t count, const Datatype& type, int destination,
                        int tag) override {
            world.send(request, rank, destination, tag, {&request, {}, buffer, count, &type});
        }
        void start_marker(message::SendRequest& request, const message::ErrorMarker& marker, int64_t bytes, int destination,
                          int tag) override {
            start_send(request, &marker, bytes, datatype::predefined(MPI_BYTE), destination, tag);
        }
        void start_receive(message::ReceiveRequest& request, void* buffer, int64_t count, const Datatype& type, int source,
                           int tag) override {
            request.buffer = buffer;
            request.count = count;
            request.type = &type;
            world.receive(request, source, rank, tag, {&request, buffer, count, &type});
        }
    };

    static std::vector<std::byte> packed(const PendingSend& send) {
        std::vector<std::byte> bytes(datatype::packed_size(*send.type, send.count));
        datatype::pack(*send.type, send.count, send.buffer, 0, bytes.data(), bytes.size());
        return bytes;
    }

    static void fail(starling::progress::Request& request, int error) {
        request.outcome.error = error;
        request.complete();
    }

    /// Fails the request, with an error class other than that of the last failure, and with that class's text.
    void fail_anew(starling::progress::Request& request) {
        // The code under test treats these two classes specially.
        do next_class_ = next_class_ % 60 + 1;
        while (next_class_ == MPI_ERR_TRUNCATE || next_class_ == MPI_ERR_PROC_ABORTED);
        request.outcome.error = starling::fail(next_class_, "%s", sentence_of(next_class_).c_str());
        starling::progress::save_failure(request);
        request.complete();
    }

    void send(message::SendRequest& request, int from, int to, int tag, PendingSend pending) {
        if (to < 0 || to >= static_cast<int>(participants_.size()) || to == from) std::abort();
        if (dead.count(to)) return fail(request, MPI_ERR_PROC_ABORTED);
        // An empty message and an error marker are always eager: they complete before the receiver posts its receive.
        const uint64_t bytes = datatype::packed_size(*pending.type, pending.count);
        const bool marks =
            bytes <= starling::message::ErrorMarker::kMost && message::ErrorMarker::read(packed(pending).data(), bytes);
        const bool eager = bytes == 0 || marks || (bytes <= eager_limit && chooser_.pick(2) == 0);
        if (eager) {
            pending.data = packed(pending);
            pending.request = nullptr;
        }
        pairs_[{from, to, tag}].sends.push_back(std::move(pending));
        if (eager) request.complete();
    }

    void receive(message::ReceiveRequest& request, int from, int to, int tag, PendingReceive pending) {
        if (from < 0 || from >= static_cast<int>(participants_.size()) || to == from) std::abort();
        if (dead.count(from)) {
            if (!reached_by_message.count(to)) return fail(request, MPI_ERR_PROC_ABORTED);
            request.outcome.bytes = datatype::packed_size(*pending.type, pending.count);
            return request.complete();
        }
        pairs_[{from, to, tag}].receives.push_back(pending);
    }

    /// Returns the participant that leads host `number` of a side.
    int leader(int side, int number) const {
        const Participant& first = *participants_[static_cast<size_t>(side)];
        return first.alone ? side + number : first.map.leaders[static_cast<size_t>(number)];
    }

    bool withdraw(message::ReceiveRequest& request) {
        for (auto& [key, pair] : pairs_)
            for (auto at = pair.receives.begin(); at != pair.receives.end(); ++at) {
                if (at->request != &request) continue;
                pair.receives.erase(at);
                return true;
            }
        return false;
    }

    void deliver(Sent& sent, int to) {
        starling::multicast::MulticastReceive& receive = *sent.receives.at(to);
        sent.receives.erase(to);
        --sent.left;
        if (fails_from >= 0 && delivered_++ >= fails_from) return fail_anew(receive);
        receive.outcome.bytes = sent.data.size();
        if (sent.data.size() > receive.bytes)
            receive.outcome.error = MPI_ERR_TRUNCATE;
        else if (!sent.data.empty())
            std::memcpy(receive.memory, sent.data.data(), sent.data.size());
        receive.complete();
    }

    void deliver(Pair& pair) {
        PendingSend send = std::move(pair.sends.front());
        const PendingReceive receive = pair.receives.front();
        pair.sends.pop_front();
        pair.receives.pop_front();
        if (fails_from >= 0 && delivered_ >= fails_from) {
            ++delivered_;
            fail_anew(*receive.request);
            if (send.request) fail_anew(*send.request);
            return;
        }
        const std::vector<std::byte> data = send.request ? packed(send) : std::move(send.data);
        const uint64_t capacity = datatype::packed_size(*receive.type, receive.count);
        const bool too_long = data.size() > capacity || delivered_ == truncated;
        ++delivered_;
        if (too_long) {
            const int marked = starling::message::ErrorMarker::read(data.data(), data.size());
            receive.request->outcome.error = marked ? marked : MPI_ERR_TRUNCATE;
        } else {
            datatype::unpack(*receive.type, receive.count, receive.buffer, 0, data.data(), data.size());
            receive.request->outcome.bytes = data.size();
        }
        receive.request->complete();
        if (send.request) send.request->complete();
    }

    Chooser& chooser_;
    std::vector<std::unique_ptr<Participant>> participants_;
    std::vector<std::unique_ptr<starling::collective::CollectiveRequest>> requests_;
    std::map<std::tuple<int, int, int>, Pair> pairs_;
    std::map<std::tuple<int, int, uint64_t>, Sent> casts_;
    struct Waste {
        std::vector<std::byte> memory;
        message::ReceiveRequest request;
    };
    std::deque<Waste> waste_;
    int64_t delivered_ = 0;
    int next_class_ = 0;
};

}  // namespace simulation
