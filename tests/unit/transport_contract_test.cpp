// Runs the tests of the transports' contract (transport_contract.h) for every transport that needs no device.
#include "transport_contract.h"

#include "transport/loopback/loopback.h"
#include "transport/shm/shared_memory.h"

namespace starling::transport {
namespace {

class LoopbackWorld final : public World {
  public:
    LoopbackWorld() {
        EXPECT_EQ(job::JobSegment::create(2, nullptr, 0, segment_), MPI_SUCCESS) << failure_text();
        transport_ = std::make_unique<loopback::Loopback>(ProcessAddress{&segment_, 1}, sink_);
    }
    Transport& sender() override { return *transport_; }
    Recorder& at_sender() override { return sink_; }
    ProcessAddress target() override { return {&segment_, 1}; }
    bool is_woken(Transport&, int) override { return std::exchange(sink_.woken, 0) > 0; }

  private:
    job::JobSegment segment_;
    Recorder sink_;
    std::unique_ptr<loopback::Loopback> transport_;
};

class SharedMemoryWorld final : public World {
  public:
    SharedMemoryWorld() {
        EXPECT_EQ(job::JobSegment::create(2, nullptr, 0, segment_), MPI_SUCCESS) << failure_text();
        for (uint32_t rank = 0; rank < 2; ++rank)
            ends_[rank] = std::make_unique<shm::SharedMemory>(ProcessAddress{&segment_, rank}, sinks_[rank]);
    }
    Transport& sender() override { return *ends_[0]; }
    Transport& receiver() override { return *ends_[1]; }
    Recorder& at_sender() override { return sinks_[0]; }
    Recorder& at_receiver() override { return sinks_[1]; }
    ProcessAddress target() override { return {&segment_, 1}; }
    ProcessAddress source() override { return {&segment_, 0}; }
    bool is_woken(Transport& end, int) override {
        const uint32_t rank = &end == ends_[1].get();
        job::Doorbell& doorbell = shm::SegmentRegion(segment_.region(rank)).doorbell();
        doorbell.sleeping.store(job::kOnFutex);
        return std::exchange(rings_[rank], doorbell.rings.load()) != doorbell.rings.load();
    }
    bool poll_path(Path& path) override {
        return static_cast<shm::ShmPath&>(path).in && static_cast<shm::ShmPath&>(path).poll_ring(16, [&](const Packet& packet) {
            sinks_[&path.by == ends_[1].get()].deliver(path.user, packet);
        });
    }
    void after_finish(Path& path) override {
        EXPECT_TRUE(poll_until([&] { return static_cast<shm::ShmPath&>(path).try_close(); }));
    }

  private:
    job::JobSegment segment_;
    Recorder sinks_[2];
    std::unique_ptr<shm::SharedMemory> ends_[2];
    uint32_t rings_[2] = {};
};

const auto kAll = ::testing::Values(Setup{"loopback", "loopback", make<LoopbackWorld>},
                                    Setup{"shm", "shm", make<SharedMemoryWorld>}, Setup{"ip", "ip", make<NetworkWorld>});

INSTANTIATE_TEST_SUITE_P(All, Contract, kAll, name_of);
INSTANTIATE_TEST_SUITE_P(All, UnconnectedContract, kAll, name_of);

// The queue inside the loopback transport: entries of any length, wrapping around the end of its memory repeatedly.
TEST(LoopbackQueue, EntriesOfAnyLengthStayWhole) {
    loopback::LoopbackQueue queue;
    std::vector<uint32_t> inside;
    uint32_t seed = 1, next = 0;
    const auto random = [&seed](uint32_t below) { return (seed = seed * 1664525 + 1013904223) / 65536 % below; };
    bool was_full = false;
    for (int step = 0; step < 100'000; ++step) {
        const bool grows = step / 200 % 2 == 0;
        if (random(10) < (grows ? 8u : 2u)) {
            const uint32_t bytes = random(16 * 1024 + 1);
            loopback::LoopbackPacket* const entry = queue.reserve(bytes);
            was_full |= !entry;
            if (!entry) continue;
            std::memset(entry->payload(), static_cast<int>(next & 0xff), bytes);
            entry->header.message.context = next;
            queue.push(*entry, bytes);
            inside.push_back(next++);
        } else if (!queue.empty()) {
            loopback::LoopbackPacket& entry = queue.front();
            ASSERT_EQ(entry.header.message.context, inside.front());
            for (uint32_t i = 0; i < entry.bytes; i += 97) ASSERT_EQ(entry.payload()[i], std::byte(inside.front() & 0xff));
            inside.erase(inside.begin());
            queue.pop();
        }
        std::vector<uint32_t> seen;
        queue.each(
            [&](loopback::LoopbackPacket& entry) { seen.push_back(static_cast<uint32_t>(entry.header.message.context)); });
        ASSERT_EQ(seen, inside);
    }
    EXPECT_TRUE(was_full);
}

}  // namespace
}  // namespace starling::transport
