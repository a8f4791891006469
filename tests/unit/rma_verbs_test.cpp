// Accesses to another host's memory if both hosts have InfiniBand: puts and gets by the device (rma/rdma_access.cpp), updates by the owner,
// with connections that break meanwhile.
#include <array>
#include <random>

#include "message_team.h"
#include "rma/access.h"
#include "rma/target_side.h"
#include "transport/verbs/plugin.h"
#include "verbs_processes.h"

namespace starling::message::test {
namespace {

using rma::Access;
using rma::AccessOperation;
using rma::Target;
using verbs::processes::shared;

constexpr uint64_t kBytes = 256 * 1024, kSecret = 0x1234567;

const datatype::Datatype& byte_type() { return datatype::predefined(MPI_BYTE); }

class RmaVerbs : public testing::Test {
  protected:
    void SetUp() override {
        verbs::processes::make();
        verbs::use_plugin(&verbs::processes::kPlugin);
    }
    void TearDown() override {
        verbs::use_plugin(nullptr);
        verbs::processes::unmake();
    }
};

/// Performs rank 1's accesses to rank 0's memory, and checks them against a local copy.
class Asker {
  public:
    explicit Asker(Node& node) : mirror_(kBytes), random_(11) {
        target_.peer = &node.peer(0);
        target_.key = rma::known_key(0, kSecret, kBytes);
    }
    void move(AccessOperation operation) {
        const uint64_t bytes = std::array<uint64_t, 6>{1, 8, 64, 1000, 5000, 70'000}[random_() % 6];
        const uint64_t offset = random_() % (kBytes - bytes);
        std::vector<std::byte> data(bytes);
        const rma::LocalBuffer local{data.data(), static_cast<int64_t>(bytes), &byte_type()};
        Access access;
        access.operation = operation;
        access.remote_block = {offset, static_cast<int64_t>(bytes), &byte_type()};
        (operation == AccessOperation::put ? access.origin : access.result) = local;
        if (operation == AccessOperation::put) {
            for (std::byte& one : data) one = static_cast<std::byte>(random_());
            std::copy(data.begin(), data.end(), mirror_.begin() + static_cast<std::ptrdiff_t>(offset));
        }
        carry_out(access);
        EXPECT_TRUE(std::equal(data.begin(), data.end(), mirror_.begin() + static_cast<std::ptrdiff_t>(offset)))
            << offset << " " << bytes;
    }
    void add(uint64_t offset, uint64_t operand) {
        Access access;
        access.operation = AccessOperation::update;
        access.origin = {&operand, 1, &datatype::predefined(MPI_UINT64_T)};
        access.remote_block = {offset, 1, &datatype::predefined(MPI_UINT64_T)};
        access.update = {&datatype::predefined(MPI_UINT64_T), &datatype::predefined(MPI_SUM)};
        carry_out(access);
        uint64_t value = 0;
        std::memcpy(&value, mirror_.data() + offset, sizeof value);
        value += operand;
        std::memcpy(mirror_.data() + offset, &value, sizeof value);
    }
    void read_all() {
        std::vector<std::byte> data(kBytes);
        Access access;
        access.operation = AccessOperation::get;
        access.remote_block = {0, static_cast<int64_t>(kBytes), &byte_type()};
        access.result = {data.data(), static_cast<int64_t>(kBytes), &byte_type()};
        carry_out(access);
        EXPECT_TRUE(data == mirror_);
    }
    void beyond() {
        std::byte data[16];
        Access access;
        access.operation = AccessOperation::get;
        access.remote_block = {kBytes - 8, 16, &byte_type()};
        access.result = {data, 16, &byte_type()};
        rma::start(access, target_);
        progress::wait_until([&] { return access.done; });
        EXPECT_EQ(access.outcome.error, MPI_ERR_RMA_RANGE);
    }
    Target& target() { return target_; }

  private:
    void carry_out(Access& access) {
        rma::start(access, target_);
        progress::wait_until([&] { return access.done; });
        EXPECT_EQ(access.outcome.error, MPI_SUCCESS);
    }
    Target target_;
    std::vector<std::byte> mirror_;
    std::mt19937 random_;
};

void two_hosts(Settings settings, int times, const std::function<void(Asker&)>& check) {
    settings.push_back({"STARLING_CONNECT_MESSAGES", "4"});
    Team team(Placement{{0, 0}, {0, 1}});
    team.start(settings, [=](Node& node) {
        rma::listen();
        std::vector<std::byte> memory(kBytes);
        const rma::RegionKey key = rma::known_key(0, kSecret, kBytes);
        if (node.rank == 0) rma::expose_known(key, memory.data());
        node.barrier(0);
        if (node.rank == 1) {
            Asker asker(node);
            for (int i = 0; i < times; ++i) {
                if (i % 5 == 4) asker.add(static_cast<uint64_t>(i % 64) * 8, static_cast<uint64_t>(i));
                asker.move(i % 2 ? AccessOperation::get : AccessOperation::put);
                if (i % 100 == 0) usleep(12'000);  // time for an RC connection to open
            }
            asker.read_all();
            asker.beyond();
            check(asker);
            EXPECT_EQ(asker.target().open, 0u);
        }
        node.barrier(1);
        if (node.rank == 0) rma::withdraw(key);
        node.barrier(2);
    });
    team.expect_success();
}

TEST_F(RmaVerbs, PutsAndGetsUseRdma) {
    two_hosts({}, 600, [](Asker& asker) {
        EXPECT_GT(counters.accesses_device, 100u);
        EXPECT_EQ(asker.target().device.state, rma::RdmaState::RdmaKeyState::known);
    });
    EXPECT_GT(shared->transfers, 100u);
}

TEST_F(RmaVerbs, AccessesUsePacketsIfRegistrationFails) {
    shared->refuse_memory = true;
    two_hosts({}, 300, [](Asker&) { EXPECT_EQ(counters.accesses_device, 0u); });
}

TEST_F(RmaVerbs, AccessesUsePacketsWithoutVerbs) {
    two_hosts({{"STARLING_VERBS", "off"}}, 300, [](Asker& asker) {
        EXPECT_EQ(counters.accesses_device, 0u);
        EXPECT_FALSE(asker.target().overtakes());
    });
}

TEST_F(RmaVerbs, AccessesSurviveBrokenConnections) {
    shared->breaks_after = 150;
    two_hosts({}, 600, [](Asker&) {});
    EXPECT_GE(shared->counted, 150u);
}

}  // namespace
}  // namespace starling::message::test
