// Tests of the contract of transports (transport/transport.h) between two ends, which for the loopback transport are one. For a new
// transport, add a World and instantiate these tests in a test file that includes this header (as transport_contract_test.cpp and
// plugins_verbs_contract_test.cpp do).
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "job/job_description.h"
#include "job/job_segment.h"
#include "mpi.h"
#include "transport/multicast_groups.h"
#include "transport/network/network.h"
#include "transport/remote_memory.h"
#include "transport/transport.h"
#include "transport/wait_source.h"

namespace starling::transport {
namespace {

constexpr uint64_t kLongestNs = 200'000'000'000;  ///< longest time in ns that a test waits; a longer wait is a failure

/// Records everything that a transport reports to one end.
class Recorder final : public Sink {
  public:
    struct Got {
        void* user;
        uint64_t number;
        std::string text;
        bool operator==(const Got&) const = default;
    };
    void deliver(void* user, const Packet& packet) override {
        if (on_packet) on_packet();
        EXPECT_EQ(reinterpret_cast<uintptr_t>(packet.payload) % 8, 0u);
        if (packet.header.kind == packet::PacketKind::wire_lost && on_control) return on_control(user, packet);
        EXPECT_EQ(packet.header.kind, packet::PacketKind::eager);
        got.push_back({user, packet.header.message.context,
                       std::string(reinterpret_cast<const char*>(packet.payload), packet.header.bytes)});
    }
    Path* on_unknown_sender(const UnknownSender& caller, bool& later) override {
        return on_caller ? on_caller(caller, later) : nullptr;
    }
    const job::JobSegment* find_segment(job::JobId job) override {
        return segment && segment->header().id == job ? segment : nullptr;
    }
    const job::JobSegment* segment = nullptr;
    void failed(void* user) override { lost.push_back(user); }
    void wake() override { ++woken; }
    void connection(void* user, ConnectionEvent what) override { news.emplace_back(user, what); }
    void locate(void* user) override { sought.push_back(user); }
    void send(void*, packet::PacketKind kind, const void* payload, uint32_t bytes) override {
        if (on_send) on_send(kind, payload, bytes);
    }
    std::byte* target(void*, const StreamFragment& piece, uint64_t done, uint64_t bytes) override {
        if (piece.offset + done + bytes > streamed.size()) streamed.resize(piece.offset + done + bytes);
        return reinterpret_cast<std::byte*>(streamed.data()) + piece.offset + done;
    }
    void unpack(void*, const StreamFragment&, uint64_t, const std::byte*, uint64_t) override {
        ADD_FAILURE() << "unpack() was called, although target() provided memory";
    }
    void on_fragment(void*, const StreamFragment& piece) override { stream_bytes += piece.bytes; }

    std::vector<Got> got;
    std::vector<void*> lost, sought;
    std::vector<std::pair<void*, ConnectionEvent>> news;
    std::string streamed;
    uint64_t stream_bytes = 0;
    int woken = 0;
    std::function<void()> on_packet;
    std::function<void(void*, const Packet&)> on_control;
    std::function<void(packet::PacketKind, const void*, uint32_t)> on_send;
    std::function<Path*(const UnknownSender&, bool&)> on_caller;
};

/// A transport with two processes, the ends of a path.
class World {
  public:
    virtual ~World() = default;
    virtual Transport& sender() = 0;
    virtual Transport& receiver() { return sender(); }
    virtual Recorder& at_sender() = 0;
    virtual Recorder& at_receiver() { return at_sender(); }
    /// Return the address of the receiver as the sender names it, and that of the sender as the receiver names it.
    virtual ProcessAddress target() = 0;
    virtual ProcessAddress source() { return target(); }
    /// Returns whether this end was woken since the last call, or is woken within `ms` milliseconds.
    virtual bool is_woken(Transport& end, int ms) = 0;
    /// Does the work that the owner of a path does besides Transport::poll().
    virtual bool poll_path(Path&) { return false; }
    virtual void after_finish(Path&) {}
    /// Brings the path from the sender into the state under test, by any packets that it sends. Nothing is in flight afterwards.
    virtual void begin(Path&, const std::function<bool()>& /*send_one*/, const std::function<Path*()>& /*back*/) {}
    /// Returns whether the sender's transport itself detects that the receiver died.
    virtual bool notices_death() const { return false; }

    bool one_end() { return &sender() == &receiver(); }
    bool poll(Transport& end) {
        bool any = end.poll(Transport::PollUrgency::now);
        for (Path* path : paths)
            if (&path->by == &end) any |= poll_path(*path);
        return any;
    }
    bool poll() {
        const bool any = poll(receiver());
        return (!one_end() && poll(sender())) || any;
    }
    /// Polls until the condition holds; returns false after kLongestNs, which only a fault lets pass.
    bool poll_until(const std::function<bool()>& condition) {
        for (const uint64_t end = now_ns() + kLongestNs; !condition();) {
            poll();
            if (now_ns() > end) return false;
        }
        return true;
    }

    std::vector<Path*> paths;
};

class NetworkWorld : public World {
  public:
    NetworkWorld() {
        set_variable("STARLING_IP_INTERFACES", "lo");
        set_variable("STARLING_IP_TIMEOUT", "1");
        job::JobDescription job;
        job.draw();
        // The tests run twice: without encryption and with STARLING_ENCRYPTION=on.
        const char* const encryption = std::getenv("STARLING_ENCRYPTION");
        if (encryption && std::string_view(encryption) == "on") job.draw_network_secret();
        job.size = job.universe_size = 2;
        job.several_hosts = true;
        for (int h = 0; h < 2; ++h) {
            job::HostEntry& host = job.hosts.emplace_back();
            host.id = job::this_host();
            std::snprintf(host.name, sizeof host.name, "host%d", h);
            host.addresses = 1;
            host.ipv4[0] = htonl(INADDR_LOOPBACK);
        }
        std::vector<uint32_t> next_local(2);
        job.placements = job::fold_placements({0, 1}, 0, next_local);
        for (uint32_t h = 0; h < 2; ++h) {
            EXPECT_EQ(job::JobSegment::create(job, h, segments_[h]), MPI_SUCCESS) << failure_text();
            sinks_[h].segment = &segments_[h];
            EXPECT_EQ(network::Network::open({&segments_[h], h}, sinks_[h], ends_[h]), MPI_SUCCESS) << failure_text();
        }
        // Publish each port on the other host, as daemons would on request.
        for (uint32_t h = 0; h < 2; ++h) segments_[1 - h].port(h).store(segments_[h].port(h).load());
    }
    Transport& sender() override { return *ends_[0]; }
    Transport& receiver() override { return *ends_[1]; }
    Recorder& at_sender() override { return sinks_[0]; }
    Recorder& at_receiver() override { return sinks_[1]; }
    ProcessAddress target() override { return {&segments_[0], 1}; }
    ProcessAddress source() override { return {&segments_[1], 0}; }
    bool is_woken(Transport& end, int ms) override {
        pollfd wait{end.wait_source()->wait_fd(), POLLIN, 0};
        return ::poll(&wait, 1, ms) > 0;
    }
    bool notices_death() const override { return true; }

  private:
    job::JobSegment segments_[2];
    Recorder sinks_[2];
    network::Network* ends_[2] = {};  ///< the two ends' transports; they live until the process ends
};

/// Opens the connection between two paths as link does, without waiting. `there` is the path back to `here`.
inline void open_connection(Path& here, Path& there) {
    Connector &caller = *here.by.connector(), &called = *there.by.connector();
    ASSERT_TRUE(caller.has_place() && called.has_place());
    caller.acquire_slot(here);
    called.acquire_slot(there);
    std::byte offer[Connector::kOffer] = {}, answer[Connector::kOffer] = {};
    EXPECT_LE(caller.describe(here, packet::PacketKind::open, offer), Connector::kOffer);
    ASSERT_TRUE(called.is_offer(offer));
    called.use(there, packet::PacketKind::open, offer);
    EXPECT_LE(called.describe(there, packet::PacketKind::accept, answer), Connector::kOffer);
    ASSERT_TRUE(caller.is_offer(answer));
    caller.use(here, packet::PacketKind::accept, answer);
}

struct Setup {
    const char* name;
    const char* transport;
    std::unique_ptr<World> (*make)();
};
inline std::string name_of(const ::testing::TestParamInfo<Setup>& info) { return info.param.name; }
template <class W>
std::unique_ptr<World> make() {
    return std::make_unique<W>();
}

class Contract : public ::testing::TestWithParam<Setup> {
  protected:
    void SetUp() override {
        world = GetParam().make();
        ASSERT_EQ(world->sender().attach(world->target(), &token, path), MPI_SUCCESS) << failure_text();
        world->paths.push_back(path);
        if (!world->one_end()) world->at_sender().on_caller = [this](const UnknownSender&, bool&) { return path; };
        world->at_receiver().on_caller = [this](const UnknownSender& caller, bool&) -> Path* {
            EXPECT_EQ(caller.job.id, world->source().job());
            EXPECT_EQ(caller.rank, world->source().rank);
            return back_path();
        };
        // Do the work that link does for connections: send their control packets, and pass received ones to the path.
        for (Recorder* each : {&world->at_sender(), &world->at_receiver()}) {
            Path*& of = each == &world->at_sender() ? path : back;
            each->on_send = [&of](packet::PacketKind kind, const void* payload, uint32_t bytes) {
                PacketSlot slot;
                if (!of->reserve(bytes, slot)) return;  // link would queue the packet; in these tests the path always has room
                slot.header->kind = kind;
                slot.header->operation = 0;
                std::memcpy(slot.payload, payload, bytes);
                slot.path->commit(slot, bytes);
            };
            each->on_control = [&of](void*, const Packet& packet) { of->handle(packet); };
        }
        world->begin(
            *path, [this] { return send(0, 8); }, [this] { return back_path(); });
        world->at_receiver().got.clear();
        world->at_sender().news.clear();
        world->at_receiver().news.clear();
    }
    void TearDown() override {
        for (Path* one : {path, back})
            if (one) one->by.detach(*one);
    }
    /// Returns the path from the receiver to the sender; attaches it when first called.
    Path* back_path() {
        if (back) return back;
        EXPECT_EQ(world->receiver().attach(world->source(), &back_token, back), MPI_SUCCESS) << failure_text();
        world->paths.push_back(back);
        return back;
    }

    static std::string text_of(uint64_t number, size_t bytes) {
        std::string text(bytes, '\0');
        for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>('a' + (number + i) % 26);
        return text;
    }
    static bool send(Path& to, uint64_t number, const std::string& text, uint32_t reserve_more = 0) {
        PacketSlot slot;
        if (!to.reserve(static_cast<uint32_t>(text.size()) + reserve_more, slot)) return false;
        slot.header->kind = packet::PacketKind::eager;
        slot.header->operation = 0;
        slot.header->message = {0, 0, number, 0};
        std::memcpy(slot.payload, text.data(), text.size());
        slot.path->commit(slot, static_cast<uint32_t>(text.size()));
        return true;
    }
    bool send(uint64_t number, size_t bytes) { return send(*path, number, text_of(number, bytes)); }
    /// Sends packets until the path is full; returns their number.
    uint64_t fill(size_t bytes) {
        uint64_t sent = 0;
        for (; sent < 1'000'000 && bytes <= path->payload_limit() && send(sent, bytes); ++sent) {}
        EXPECT_LT(sent, 1'000'000u) << "a path must become full at some time";
        return sent;
    }
    /// Releases the slot of a connection that broke or that the peer closed.
    void follow_news() {
        for (Path* each : {path, back})
            if (each && !std::exchange((each == path ? world->at_sender() : world->at_receiver()).news, {}).empty())
                each->by.connector()->release_slot(*each);
    }
    const std::vector<Recorder::Got>& got() { return world->at_receiver().got; }
    bool receive(size_t count) {
        return world->poll_until([&] { return got().size() >= count; });
    }

    std::unique_ptr<World> world;
    Path *path = nullptr, *back = nullptr;
    int token = 0, back_token = 0;  ///< their addresses are the user pointers of `path` and `back`
};

/// Tests that are valid only while no connection is open; for worlds that do not begin with an open one.
class UnconnectedContract : public Contract {};

TEST_P(Contract, DescribesItself) {
    const Traits& traits = world->sender().traits;
    EXPECT_STREQ(traits.name, GetParam().transport);
    EXPECT_GT(std::strlen(traits.reaches), 0u);
    EXPECT_GT(traits.latency_ns, 0u);
    EXPECT_TRUE(world->sender().reaches(world->target()));
    EXPECT_EQ(path->user, &token);
    EXPECT_EQ(path->to, world->target());
}

TEST_P(Contract, PacketsArriveInOrderOnceWhateverTheirLength) {
    constexpr size_t kLengths[] = {0, 1, 7, 8, 31, 32, 33, 64, 900, 960, 961, 1500, 4096, 9001, 16 * 1024};
    uint64_t sent = 0;
    for (int round = 0; round < 40; ++round)
        for (const size_t bytes : kLengths) {
            if (bytes > path->payload_limit()) continue;
            ASSERT_TRUE(world->poll_until([&] { return send(sent, bytes); }));
            ++sent;
        }
    ASSERT_TRUE(receive(sent));
    EXPECT_TRUE(world->poll_until([&] { return path->idle(); }));
    ASSERT_EQ(got().size(), sent);
    for (uint64_t i = 0; i < sent; ++i) {
        ASSERT_EQ(got()[i].number, i);
        ASSERT_EQ(got()[i].text, text_of(i, got()[i].text.size()));
    }
}

TEST_P(Contract, TheLongestPacketHasTheLengthOfTheTraits) {
    EXPECT_LE(path->payload_limit(), world->sender().traits.payload);
    EXPECT_GE(path->payload_limit(), kLeastPayload);
    ASSERT_TRUE(send(0, path->payload_limit()));
    ASSERT_TRUE(receive(1));
    PacketSlot slot;
    EXPECT_FALSE(path->reserve(world->sender().traits.payload + 1, slot));
}

TEST_P(Contract, LessMayBeCommittedThanWasReserved) {
    for (const uint32_t more : {1u, 30u, 500u, 900u}) ASSERT_TRUE(send(*path, more, "short", more));
    ASSERT_TRUE(send(2, 40));
    ASSERT_TRUE(receive(5));
    for (int i = 0; i < 4; ++i) EXPECT_EQ(got()[i].text, "short");
    EXPECT_EQ(got()[4].text, text_of(2, 40));
}

TEST_P(Contract, AFullPathHasRoomAgainAfterPolling) {
    for (const size_t bytes : {size_t{0}, size_t{8}, size_t{500}, size_t{900}}) {
        world->at_receiver().got.clear();
        const uint64_t sent = fill(bytes);
        EXPECT_GT(sent, 0u);
        ASSERT_TRUE(world->poll_until([&] { return send(sent, bytes); }));
        ASSERT_TRUE(receive(sent + 1));
        for (uint64_t i = 0; i <= sent; ++i) ASSERT_EQ(got()[i].number, i);
        ASSERT_TRUE(world->poll_until([&] { return path->idle(); }));
    }
}

TEST_P(Contract, AFullPathThatIsClosedAcceptsNoPacket) {
    fill(200);
    path->close();
    EXPECT_FALSE(send(0, 8));
    for (int i = 0; i < 100; ++i) world->poll();
    EXPECT_TRUE(world->at_sender().lost.empty()) << "the closing end needs no event";
    std::erase(world->paths, path);
    world->sender().detach(*path);
    path = nullptr;
}

TEST_P(Contract, AReceiverIsWoken) {
    ASSERT_TRUE(send(0, 8));
    ASSERT_TRUE(receive(1));
    ASSERT_TRUE(world->poll_until([&] { return path->idle(); }));
    for (int quiet = 0; quiet < 100;) quiet = world->poll() ? 0 : quiet + 1;
    while (world->is_woken(world->receiver(), 0)) world->poll();
    ASSERT_TRUE(send(1, 8));
    EXPECT_TRUE(world->is_woken(world->receiver(), 10'000));
    ASSERT_TRUE(receive(2));
}

// A process that polls when woken and at next_deadline() misses nothing.
TEST_P(Contract, PollingAtDeadlinesMissesNothing) {
    world->is_woken(world->receiver(), 0);
    const uint64_t sent = fill(100);
    for (const uint64_t end = now_ns() + kLongestNs; (got().size() < sent || !path->idle()) && now_ns() < end;)
        for (Transport* each : {&world->receiver(), &world->sender()}) {
            if (!world->is_woken(*each, 0) && each->next_deadline() > now_ns()) continue;
            while (world->poll(*each)) {}
        }
    EXPECT_EQ(got().size(), sent);
}

TEST_P(Contract, PacketsThatFailForLackOfMemoryAreDeliveredAgainInOrder) {
    const uint64_t sent = 50;
    int failures = 0;
    size_t refused = SIZE_MAX;
    world->at_receiver().on_packet = [&] {
        if (got().size() % 5 != 3 || got().size() == refused) return;
        refused = got().size();
        ++failures;
        throw std::bad_alloc();
    };
    uint64_t next = 0;
    for (const uint64_t end = now_ns() + kLongestNs; got().size() < sent && now_ns() < end;) {
        while (next < sent && send(next, 16)) ++next;
        try {
            world->poll();
        } catch (const std::bad_alloc&) {}
        follow_news();
    }
    ASSERT_EQ(got().size(), sent);
    EXPECT_EQ(failures, 10);
    for (uint64_t i = 0; i < sent; ++i) ASSERT_EQ(got()[i].number, i);
}

TEST_P(Contract, ASinkMaySendFromItsUpcall) {
    // The receiver answers each packet, and the sender each answer.
    constexpr size_t kPackets = 100;
    size_t answers = 0;
    world->at_receiver().on_packet = [&] {
        if (answers < kPackets) answers += send(world->one_end() ? *path : *back_path(), 0, "answer");
    };
    if (!world->one_end()) world->at_sender().on_packet = [&] { send(1, 6); };
    ASSERT_TRUE(send(0, 8));
    ASSERT_TRUE(world->poll_until([&] { return answers == kPackets && path->idle(); }));
    ASSERT_TRUE(receive(kPackets));
}

TEST_P(Contract, ADeadPeerFailsItsPathOnce) {
    if (!world->notices_death()) return;  // otherwise the receiver's launcher notifies link
    ASSERT_TRUE(send(0, 8));
    ASSERT_TRUE(receive(1));
    ASSERT_TRUE(send(1, 8));
    for (const uint64_t end = now_ns() + kLongestNs; world->at_sender().lost.empty() && now_ns() < end;)
        world->poll(world->sender());
    EXPECT_EQ(world->at_sender().lost, std::vector<void*>{&token});
    EXPECT_FALSE(failure_text().empty());
    EXPECT_FALSE(send(2, 8));
    EXPECT_TRUE(path->idle()) << "the path has outstanding work, so this process could not end";
    for (int i = 0; i < 100; ++i) world->poll(world->sender());
    EXPECT_EQ(world->at_sender().lost.size(), 1u);
}

TEST_P(UnconnectedContract, AConnectionOpensCarriesAndEnds) {
    Connector *const here = world->sender().connector(), *const there = world->receiver().connector();
    ASSERT_EQ(here != nullptr, (world->sender().traits.capabilities & kConnections) != 0);
    if (!here) return;
    const auto number_of_users = [](Connector& of) {
        int users = 0;
        of.each_user([](void*, void* count) { ++*static_cast<int*>(count); }, &users);
        return users;
    };
    const auto await = [&](Recorder& at, void* user, ConnectionEvent what) {
        const std::pair<void*, ConnectionEvent> wanted{user, what};
        return world->poll_until([&] { return !at.news.empty(); }) && std::exchange(at.news, {}) == std::vector{wanted};
    };
    EXPECT_FALSE(here->earned(0, 0));
    EXPECT_TRUE(here->earned(1'000'000, 1'000'000'000));
    Path& home = *back_path();
    uint64_t sent = 0;
    for (int round = 0; round < 3; ++round) {
        open_connection(*path, home);
        EXPECT_EQ(number_of_users(*here), 1);
        ASSERT_TRUE(await(world->at_sender(), &token, ConnectionEvent::ready));
        ASSERT_TRUE(await(world->at_receiver(), &back_token, ConnectionEvent::ready));
        for (int i = 0; i < 500; ++i, ++sent) ASSERT_TRUE(world->poll_until([&] { return send(sent, sent * 37 % 9000); }));
        // Packets sent before the end arrive, although the receiver has not polled yet.
        here->finish(*path);
        world->after_finish(*path);
        ASSERT_TRUE(await(world->at_receiver(), &back_token, ConnectionEvent::ended));
        there->finish(home);
        world->after_finish(home);
        there->release_slot(home);
        ASSERT_TRUE(await(world->at_sender(), &token, ConnectionEvent::ended));
        here->release_slot(*path);
        EXPECT_EQ(number_of_users(*here) + number_of_users(*there), 0);
        ASSERT_TRUE(receive(sent));
        for (int i = 0; i < 50; ++i, ++sent) ASSERT_TRUE(world->poll_until([&] { return send(sent, 8); }));
        ASSERT_TRUE(receive(sent));
    }
    for (uint64_t i = 0; i < sent; ++i) ASSERT_EQ(got()[i].number, i);
}

TEST_P(UnconnectedContract, WithoutAConnectionNoStreamIsAccepted) {
    OutStream::StreamSource source;
    const std::string data = text_of(3, 1'000'000);
    source.bytes = data.size();
    source.memory = reinterpret_cast<const std::byte*>(data.data());
    source.stranded = [](OutStream&) {};
    OutStream stream(source);
    StreamCarrier* const streams = world->sender().streams();
    ASSERT_EQ(streams != nullptr, (world->sender().traits.capabilities & kStreams) != 0);
    if (streams) { EXPECT_FALSE(streams->carry(*path, stream)); }
    EXPECT_TRUE(stream.has_work());
    EXPECT_GT(path->fragment_limit(), 0u);
    EXPECT_LE(path->fragment_limit(), path->payload_limit());
    if (streams) streams->end(stream, false);
}

TEST_P(Contract, RegisteredMemoryIsAccessibleByRkeyOrRegistrationIsRefused) {
    std::vector<uint64_t> memory(64, 7);
    RemoteKey key;
    Path& home = *back_path();
    RemoteMemory *const owner = world->receiver().remote_memory(), *const asker = world->sender().remote_memory();
    if (!(world->receiver().traits.capabilities & kRegions)) {
        if (!owner || owner->can_register(home)) return;
        EXPECT_EQ(owner->register_memory(home, memory.data(), 512, true, key), nullptr);
        Completion done;
        uint64_t word = 0;
        EXPECT_FALSE(asker->can_access(*path, key));
        EXPECT_EQ(asker->put(*path, key, 0, &word, 8, done), MPI_ERR_UNSUPPORTED_OPERATION);
        EXPECT_EQ(asker->get(*path, key, 0, &word, 8, done), MPI_ERR_UNSUPPORTED_OPERATION);
        return;
    }
    void* const registration = owner->register_memory(home, memory.data(), 512, true, key);
    ASSERT_NE(registration, nullptr);
    ASSERT_TRUE(asker->can_access(*path, key));
    const auto finish = [&](Completion& done) {
        EXPECT_FALSE(done.done) << "the completion was reported outside of poll()";
        return world->poll_until([&] { return done.done; }) ? done.error : -1;
    };
    Completion done;
    const uint64_t two[] = {11, 12};
    ASSERT_EQ(asker->put(*path, key, 16, two, sizeof two, done), MPI_SUCCESS);
    EXPECT_EQ(finish(done), MPI_SUCCESS);
    EXPECT_EQ(memory[1], 7u);
    EXPECT_EQ(memory[2], 11u);
    EXPECT_EQ(memory[3], 12u);
    uint64_t back[3] = {};
    ASSERT_EQ(asker->get(*path, key, 8, back, sizeof back, done), MPI_SUCCESS);
    EXPECT_EQ(finish(done), MPI_SUCCESS);
    EXPECT_EQ(back[0] + back[1] + back[2], 30u);

    // An access past the end of the registration, or after it, touches no memory.
    ASSERT_EQ(asker->put(*path, key, 504, two, sizeof two, done), MPI_SUCCESS);
    EXPECT_EQ(finish(done), MPI_ERR_RMA_RANGE);
    EXPECT_EQ(memory[63], 7u);
    ASSERT_EQ(asker->get(*path, key, ~uint64_t{0}, back, 8, done), MPI_SUCCESS);
    EXPECT_EQ(finish(done), MPI_ERR_RMA_RANGE);
    owner->deregister(registration, true);
    ASSERT_EQ(asker->put(*path, key, 0, two, sizeof two, done), MPI_SUCCESS);
    EXPECT_EQ(finish(done), MPI_ERR_RMA_RANGE);
    EXPECT_EQ(memory[0], 7u);
}

TEST_P(Contract, CompletionsAreReportedInTheOrderOfTheirRequests) {
    if (!(world->sender().traits.capabilities & kRegions)) return;
    static std::vector<Completion*> reported;
    reported.clear();
    uint64_t memory = 5, read[3] = {};
    RemoteKey key;
    RemoteMemory *const owner = world->receiver().remote_memory(), *const asker = world->sender().remote_memory();
    void* const registration = owner->register_memory(*back_path(), &memory, sizeof memory, true, key);
    Completion done[3];
    for (int i = 0; i < 3; ++i) {
        done[i].then = [](Completion& self) { reported.push_back(&self); };
        ASSERT_EQ(asker->get(*path, key, 0, &read[i], sizeof read[i], done[i]), MPI_SUCCESS);
    }
    ASSERT_TRUE(world->poll_until([&] { return reported.size() == 3; }));
    EXPECT_EQ(reported, (std::vector<Completion*>{&done[0], &done[1], &done[2]}));
    EXPECT_EQ(read[2], 5u);
    owner->deregister(registration, true);
}

struct Listener final : DatagramHandler {
    std::vector<std::string> heard;
    void datagram(const std::byte* data, uint32_t bytes) override {
        heard.emplace_back(reinterpret_cast<const char*>(data), bytes);
    }
};

bool say(MulticastMembership& group, std::string_view text) {
    const iovec parts[2] = {{const_cast<char*>(text.data()), 1}, {const_cast<char*>(text.data()) + 1, text.size() - 1}};
    const bool sent = group.send(parts, 2);
    group.flush();
    return sent;
}

/// Repeats a message to a group until `by` receives it: datagrams to a group may be lost, and a join takes effect with a delay.
bool say_until_heard(World& world, MulticastMembership& group, const std::string& text, const Listener& by) {
    return world.poll_until([&] { return say(group, text) && !by.heard.empty() && by.heard.back() == text; });
}

TEST_P(Contract, MulticastGroupsWorkWhereATransportHasThem) {
    const bool in_one = std::string(world->receiver().traits.name) == "loopback";
    Listener one, two, other;
    std::unique_ptr<MulticastMembership> first, second, stranger;
    MulticastGroups *const at_sender = world->sender().groups(), *const at_receiver = world->receiver().groups();
    ASSERT_EQ(at_receiver != nullptr, (world->receiver().traits.capabilities & kGroups) != 0);
    if (!at_receiver) return;
    // Join two groups with the same `place`, so that the transport may map both to one network address.
    ASSERT_EQ(at_sender->join({5, 77}, one, first), MPI_SUCCESS);
    ASSERT_EQ(at_receiver->join({5, 77}, two, second), MPI_SUCCESS);
    ASSERT_EQ(at_receiver->join({5, 78}, other, stranger), MPI_SUCCESS);
    ASSERT_GE(at_receiver->payload(), kLeastPayload);
    ASSERT_TRUE(say_until_heard(*world, *first, "all", two));
    EXPECT_EQ(std::count(two.heard.begin(), two.heard.end(), "all"), std::ssize(two.heard));
    const std::string long_one(at_receiver->payload(), 'x');
    ASSERT_TRUE(say_until_heard(*world, *second, long_one, one));
    first.reset();
    ASSERT_TRUE(say(*second, "who is left"));
    ASSERT_EQ(at_sender->join({5, 78}, one, first), MPI_SUCCESS);
    ASSERT_TRUE(say_until_heard(*world, *stranger, "another group", one));
    EXPECT_EQ(std::count(one.heard.begin(), one.heard.end(), "who is left"), 0);
    if (in_one) { EXPECT_TRUE(other.heard.empty()); }
}

}  // namespace
}  // namespace starling::transport
