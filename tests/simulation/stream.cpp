#include "stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace starling::simulation {

namespace {

constexpr uint64_t kFirstRepeatNs = 200'000'000, kFirstAttemptNs = 1'000'000'000;
constexpr uint32_t kMostRepeats = 9, kMostAttempts = 6;
constexpr size_t kSegment = 1448;

}  // namespace

/// The connection between two sockets.
struct StreamLink : std::enable_shared_from_this<StreamLink> {
    /// One direction.
    struct Flow {
        std::string bytes;  ///< bytes that were sent and are unread
        uint64_t sent = 0, arrived = 0, read = 0;
        uint64_t posted = 0;    ///< bytes whose arrival is scheduled
        uint64_t last = 0;      ///< arrival time of the last bytes sent
        uint64_t acked_at = 0;  ///< time of the last arrival, which is when the receiver last acknowledged bytes
        uint32_t repeats = 0, all_repeats = 0;
        bool ends = false, ended = false;  ///< whether the end of the stream was sent; whether it has arrived
    };
    StreamSocket* ends[2] = {};  ///< the two sockets; null: closed, or not accepted yet
    bool accepted = false;
    Flow flows[2];  ///< one flow per direction, by the sending side
    uint32_t hosts[2] = {};
    Address addresses[2];
    uint32_t rail = 0;

    bool carries() const { return network()->carries(hosts[0], hosts[1], rail); }
    void attempt(uint32_t number);
    void send_arrival(int side);
    void arrive(int side, uint64_t until, bool end);
    void reset(int side, int error, uint64_t after);
};

// Delivers the first packet of a connection to the socket that listens at the address.
void StreamLink::attempt(uint32_t number) {
    World& w = *world();
    auto self = shared_from_this();
    if (!ends[0]) return;
    if (!carries()) {
        if (number >= kMostAttempts) return reset(0, ETIMEDOUT, 0);
        return w.at(w.now + (kFirstAttemptNs << number), [self, number] { self->attempt(number + 1); });
    }
    for (const auto& each : all_descriptors()) {
        auto* const listener = as<StreamSocket>(each.get());
        if (!listener || !listener->listens || listener->owner->host != hosts[1] || listener->local.port != addresses[1].port)
            continue;
        listener->waiting_.push_back(self);
        listener->changed();
        return w.at(w.now + network()->latency(Path::tcp), [self] {
            if (!self->ends[0] || self->ends[0]->error_ != 0) return;
            self->ends[0]->established_ = true;
            self->ends[0]->changed();
        });
    }
    reset(0, ECONNREFUSED, network()->latency(Path::tcp));
}

void StreamLink::send_arrival(int side) {
    World& w = *world();
    Flow& flow = flows[side];
    flow.last =
        std::max(flow.last, w.now + network()->transit(Path::tcp, hosts[side], hosts[1 - side], flow.sent - flow.posted));
    flow.posted = flow.sent;
    w.at(flow.last, [self = shared_from_this(), side, until = flow.sent, end = flow.ends] { self->arrive(side, until, end); });
}

void StreamLink::arrive(int side, uint64_t until, bool end) {
    World& w = *world();
    Flow& flow = flows[side];
    if (until <= flow.arrived && (!end || flow.ended)) return;
    if (!carries()) {
        ++flow.all_repeats;
        if (++flow.repeats > kMostRepeats) {
            reset(0, ETIMEDOUT, 0);
            return reset(1, ETIMEDOUT, 0);
        }
        const uint64_t pause = kFirstRepeatNs << std::min(flow.repeats, 6u);
        return w.at(w.now + pause, [self = shared_from_this(), side, until, end] { self->arrive(side, until, end); });
    }
    flow.repeats = 0;
    flow.acked_at = w.now;
    flow.arrived = std::max(flow.arrived, until);
    flow.ended |= end;
    StreamSocket* const reader = ends[1 - side];
    if (reader) return reader->changed();
    if (accepted && until > flow.read) reset(side, ECONNRESET, network()->latency(Path::tcp));
}

void StreamLink::reset(int side, int error, uint64_t after) {
    world()->at(world()->now + after, [self = shared_from_this(), side, error] {
        StreamSocket* const end = self->ends[side];
        if (!end || end->error_ != 0) return;
        end->error_ = error;
        end->changed();
    });
}

StreamSocket::~StreamSocket() {
    for (const auto& each : waiting_) each->reset(0, ECONNRESET, network()->latency(Path::tcp));
    if (!link_) return;
    const bool unread = link_->flows[1 - side_].arrived > link_->flows[1 - side_].read;
    if (abandoned || unread || !established_)
        link_->reset(1 - side_, ECONNRESET, network()->latency(Path::tcp));
    else if (error_ == 0)
        finish();
    link_->ends[side_] = nullptr;
}

uint32_t StreamSocket::events() const {
    if (listens) return waiting_.empty() ? 0u : EPOLLIN;
    if (error_ != 0) return EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLRDHUP;
    if (!link_ || !established_) return 0;
    const StreamLink::Flow &in = link_->flows[1 - side_], &out = link_->flows[side_];
    uint32_t now = 0;
    if (in.arrived > in.read || in.ended) now |= EPOLLIN;
    if (in.ended) now |= EPOLLRDHUP;
    if (out.sent - out.read < network()->weather().buffer) now |= EPOLLOUT;
    return now;
}

int StreamSocket::connect(const Address& target) {
    Network& net = *network();
    const uint32_t rail = net.rail_towards(target.address);
    if (rail >= net.rails() || !net.is_up(owner->host, rail)) return ENETUNREACH;
    if (local.address == 0) local = {net.address(owner->host, rail), local.port};
    if (local.port == 0) local.port = net.free_port();
    remote = target;
    link_ = std::make_shared<StreamLink>();
    link_->ends[0] = this;
    link_->hosts[0] = owner->host;
    link_->hosts[1] = Network::host_of(target.address);
    link_->addresses[0] = local;
    link_->addresses[1] = target;
    link_->rail = rail;
    world()->note("connect", target.port, rail);
    world()->at(world()->now + net.latency(Path::tcp), [link = link_] { link->attempt(0); });
    return EINPROGRESS;
}

int StreamSocket::accept() {
    if (waiting_.empty()) {
        errno = EAGAIN;
        return -1;
    }
    auto made = std::make_unique<StreamSocket>(*owner);
    made->link_ = std::move(waiting_.front());
    waiting_.pop_front();
    made->side_ = 1;
    made->established_ = true;
    made->link_->ends[1] = made.get();
    made->link_->accepted = true;
    made->local = made->link_->addresses[1];
    made->remote = made->link_->addresses[0];
    return open_descriptor(std::move(made));
}

ssize_t StreamSocket::send(const iovec* parts, size_t count) {
    const Weather& weather = network()->weather();
    if (error_ != 0) {
        errno = std::exchange(error_, EPIPE);
        return -1;
    }
    StreamLink::Flow* const flow = link_ ? &link_->flows[side_] : nullptr;
    const uint64_t open = flow ? flow->sent - flow->read : 0;
    if (!established_ || open >= weather.buffer) {
        errno = EAGAIN;
        return -1;
    }
    if (world()->random.with(weather.breaks)) {
        link_->reset(0, ECONNRESET, network()->latency(Path::tcp));
        link_->reset(1, ECONNRESET, network()->latency(Path::tcp));
    }
    std::string bytes = gather(parts, count);
    bytes.resize(std::min<uint64_t>(bytes.size(), weather.buffer - open));
    world()->note("stream", bytes.size());
    world()->happened();
    flow->bytes += bytes;
    flow->sent += bytes.size();
    link_->send_arrival(side_);
    return static_cast<ssize_t>(bytes.size());
}

ssize_t StreamSocket::receive(const iovec* parts, size_t count) {
    if (error_ != 0) {
        errno = std::exchange(error_, EPIPE);
        return errno == EPIPE ? 0 : -1;
    }
    StreamLink::Flow* const flow = link_ ? &link_->flows[1 - side_] : nullptr;
    if (!established_ || flow->arrived == flow->read) {
        if (established_ && flow->ended) return 0;
        errno = EAGAIN;
        return -1;
    }
    const bool was_full = flow->sent - flow->read >= network()->weather().buffer;
    const size_t put = scatter(std::string_view(flow->bytes).substr(0, flow->arrived - flow->read), parts, count);
    flow->bytes.erase(0, put);
    flow->read += put;
    owner->lapsed = 0;
    world()->happened();
    if (was_full)
        world()->at(world()->now + network()->latency(Path::tcp), [link = link_, side = 1 - side_] {
            if (link->ends[side]) link->ends[side]->changed();
        });
    return static_cast<ssize_t>(put);
}

void StreamSocket::finish() {
    if (!link_ || !established_ || link_->flows[side_].ends) return;
    link_->flows[side_].ends = true;
    link_->send_arrival(side_);
}

int StreamSocket::fetch_error() { return std::exchange(error_, 0); }

tcp_info StreamSocket::info() const {
    tcp_info out{};
    if (!link_) return out;
    const StreamLink::Flow& flow = link_->flows[side_];
    const uint64_t rtt_us = 2 * network()->weather().latency_ns / 1000 + 1;
    out.tcpi_unacked = static_cast<uint32_t>((flow.sent - flow.arrived + kSegment - 1) / kSegment);
    out.tcpi_retransmits = static_cast<uint8_t>(flow.repeats);
    out.tcpi_total_retrans = flow.all_repeats;
    out.tcpi_last_ack_recv = static_cast<uint32_t>((world()->now - flow.acked_at) / 1'000'000);
    out.tcpi_bytes_acked = flow.arrived;
    out.tcpi_data_segs_out = static_cast<uint32_t>(flow.sent / kSegment + flow.all_repeats);
    out.tcpi_rtt = out.tcpi_min_rtt = static_cast<uint32_t>(rtt_us);
    return out;
}

}  // namespace starling::simulation
