// The protocols for long messages: each one that STARLING_LONG_PROTOCOL requests delivers the right data, and is used wherever it can be.
#include "message/protocol/table.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <string>

#include "link/host_memory.h"
#include "message/protocol/copy_choice.h"
#include "message_traffic.h"

namespace starling::message::test {
namespace {

/// Counter changes that one long message caused in this process.
struct Moved {
    uint64_t copies, bytes_copied, packets;
};

/// Sends short messages from process 0 to process 1 until there is a ring between them.
void open_connection(Node& node) {
    for (int i = 0; i < 20; ++i) {
        if (node.rank == 0) {
            send_blocking(node, 8, 1, 1);
        } else {
            Receiving small(8, false);
            start_receive(small.request, *node.channel, small.buffer.memory.data(), 8, bytes_type(), 0, 1);
            progress::wait(small.request);
        }
    }
}

/// Sends a message from process 0 to process 1 and passes the changes of each process's counters to `check`.
void one_message(const Settings& settings, const Plan& plan, const std::function<void(Node&, const Moved&)>& check) {
    Team team({0, 0});
    team.start(settings, [&](Node& node) {
        open_connection(node);  // first, so that the counters below count only the message
        node.barrier(0);
        const Moved before{counters.copies, counters.bytes_copied, counters.messages_ring + counters.messages_inbox};
        if (node.rank == 0) {
            Sending sending(plan);
            sending.start(node);
            node.barrier(1);
            progress::wait(sending.request);
            EXPECT_EQ(sending.request.outcome.error, MPI_SUCCESS);
        } else {
            Receiving receiving(plan.bytes, plan.gaps_in);
            start_receive(receiving.request, *node.channel, receiving.buffer.memory.data(), receiving.buffer.count,
                          receiving.buffer.type(), 0, plan.tag);
            node.barrier(1);
            progress::wait(receiving.request);
            receiving.expect(plan);
        }
        node.barrier(2);
        check(node, {counters.copies - before.copies, counters.bytes_copied - before.bytes_copied,
                     counters.messages_ring + counters.messages_inbox - before.packets});
    });
    team.expect_success();
}

constexpr uint64_t kLong = 300000;

Plan plan(bool gaps_out = false, bool gaps_in = false) { return {0, 1, 7, kLong, 3, false, gaps_out, gaps_in}; }

bool kernel_copies() {
    uint64_t word = 1, copy = 0;
    const iovec from{&word, sizeof word}, to{&copy, sizeof copy};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof word;
}

TEST(Protocol, EveryProtocolHasAUniqueNameAndCanBeRequested) {
    size_t count = 0;
    const Protocol* rows = protocols(count);
    std::set<std::string> names;
    std::set<LongProtocol> choices;
    for (size_t i = 0; i < count; ++i) {
        EXPECT_TRUE(names.insert(rows[i].name).second) << rows[i].name;
        EXPECT_TRUE(choices.insert(rows[i].choice).second) << rows[i].name;
        EXPECT_EQ(rows[i].is_possible == nullptr, rows[i].choice == LongProtocol::automatic);
        EXPECT_EQ(rows[i].start == nullptr, rows[i].is_possible == nullptr);
        EXPECT_EQ(rows[i].pays == nullptr, rows[i].is_possible == nullptr);
        const char* const asked_by = kChoices<LongProtocol>[static_cast<int>(rows[i].choice)];
        EXPECT_STREQ(asked_by, rows[i].is_possible ? rows[i].name : "auto");
    }
    size_t names_of_variable = 0;
    while (kChoices<LongProtocol>[names_of_variable]) ++names_of_variable;
    EXPECT_EQ(names_of_variable, count) << "auto takes the place of the eager row";
}

TEST(Protocol, FragmentsNeedNoKernelCopy) {
    one_message({{"STARLING_LONG_PROTOCOL", "pieces"}}, plan(), [](Node& node, const Moved& moved) {
        EXPECT_EQ(moved.copies, 0u);
        EXPECT_GE(moved.packets, node.rank == 0 ? kLong / shm::kOutboxPayload : 0);
    });
}

TEST(Protocol, KernelCopyIsDoneByTheReceiverAlone) {
    if (!kernel_copies()) GTEST_SKIP() << "the kernel does not copy between processes here";
    one_message({{"STARLING_LONG_PROTOCOL", "kernel"}}, plan(), [](Node& node, const Moved& moved) {
        EXPECT_EQ(moved.bytes_copied, node.rank == 1 ? kLong : 0u);
        EXPECT_LT(moved.packets, 8u);
    });
}

TEST(Protocol, CooperativeCopyIsDoneByBothSides) {
    if (!kernel_copies()) GTEST_SKIP() << "the kernel does not copy between processes here";
    one_message({{"STARLING_LONG_PROTOCOL", "both"}}, plan(), [](Node& node, const Moved& moved) {
        EXPECT_GE(moved.bytes_copied, node.rank == 1 ? 1u : 0u);
        EXPECT_LT(moved.packets, 8u);
    });
}

TEST(Protocol, CooperativeCopyNeedsContiguousDataElseTheKernelCopies) {
    if (!kernel_copies()) GTEST_SKIP() << "the kernel does not copy between processes here";
    // With a limit of 0, fragments never pay off.
    one_message({{"STARLING_LONG_PROTOCOL", "both"}, {"STARLING_STREAM_LIMIT", "0"}}, plan(false, true),
                [](Node& node, const Moved& moved) { EXPECT_EQ(moved.bytes_copied, node.rank == 1 ? kLong : 0u); });
}

TEST(Protocol, NoncontiguousSendsUseFragmentsWhateverIsRequested) {
    for (const char* asked : {"auto", "kernel", "both", "stream", "pieces"})
        one_message({{"STARLING_LONG_PROTOCOL", asked}}, plan(true, false),
                    [](Node&, const Moved& moved) { EXPECT_EQ(moved.copies, 0u); });
}

TEST(Protocol, WithoutSingleCopyOnlyFragmentsAreUsed) {
    for (const char* asked : {"auto", "kernel", "both"})
        one_message({{"STARLING_LONG_PROTOCOL", asked}, {"STARLING_SINGLE_COPY", "off"}}, plan(),
                    [](Node&, const Moved& moved) { EXPECT_EQ(moved.copies, 0u); });
}

// Fragments, of which only the last one wakes the receiver, use rings.
TEST(Protocol, QuietPacketsOnARingDoNotWakeTheReceiver) {
    Team team({0, 0});
    team.start({{"STARLING_DIRECT_THRESHOLD", "4"}}, [](Node& node) {
        open_connection(node);
        node.barrier(0);
        if (node.rank == 0) {
            link::Peer& peer = node.peer(1);
            node.wait_for([&] { return peer.shm_path.has_ring(); });
            job::Doorbell& doorbell = peer.shm_path.region.doorbell();
            doorbell.sleeping.store(job::kOnFutex);
            const uint32_t before = doorbell.rings.load();
            for (const bool quiet : {true, false}) {
                link::PacketSlot slot;
                ASSERT_TRUE(link::reserve(peer, 8, slot));
                slot.header->kind = static_cast<packet::PacketKind>(packet::kKinds);  // ignored by the receiver
                slot.quiet = quiet;
                link::commit(peer, slot, 8);
                EXPECT_EQ(doorbell.rings.load() - before, quiet ? 0u : 1u);
            }
            doorbell.sleeping.store(0);
        }
        node.barrier(1);
    });
    team.expect_success();
}

// A synchronous send to self completes on both sides at once: the program's next test finds the receive complete.
TEST(Protocol, MessagesToSelfAreReadInPlace) {
    for (const char* single_copy : {"auto", "off"}) {
        Team team({0, 0});
        team.start({{"STARLING_SINGLE_COPY", single_copy}}, [&](Node& node) {
            Plan own = plan(false, true);
            own.source = own.destination = static_cast<int>(node.rank);
            const Moved before{counters.copies, counters.bytes_copied, counters.messages_ring + counters.messages_inbox};
            Receiving receiving(own.bytes, own.gaps_in);
            start_receive(receiving.request, *node.channel, receiving.buffer.memory.data(), receiving.buffer.count,
                          receiving.buffer.type(), static_cast<int>(node.rank), own.tag);
            Sending sending(own);
            sending.start(node);
            progress::wait(sending.request);
            EXPECT_TRUE(receiving.request.done);
            receiving.expect(own);
            EXPECT_EQ(counters.copies, before.copies);
            EXPECT_LT(counters.messages_ring + counters.messages_inbox - before.packets, 8u);
        });
        team.expect_success();
    }
}

// The receiver copies the data of memory that it can map itself. Fragments of a message, even those sent ahead of the CTS, would be two
// copies.
TEST(Protocol, MessagesFromMemoryThatTheReceiverMapsAreCopiedOnce) {
    if (!kernel_copies()) GTEST_SKIP() << "the kernel does not copy between processes here";
    constexpr int kMessages = 20;
    Team team({0, 0});
    // From STARLING_SPLIT_LIMIT on the sender copies a part, by the kernel.
    team.start({{"STARLING_DIRECT_THRESHOLD", "4"}, {"STARLING_SPLIT_LIMIT", "1099511627776"}}, [&](Node& node) {
        open_connection(node);
        const link::Process& me = link::self();
        const link::SegmentRegion own(me.job->segment().region(me.rank));
        const uint64_t before = counters.messages_ring + counters.messages_inbox;
        errno = 0;
        EXPECT_EQ(link::allocate_exchanged(own, 64, 1u << 30), nullptr);  // aligned more than huge pages are
        EXPECT_EQ(errno, EINVAL);
        for (int i = 0; i < kMessages; ++i) {
            const Plan one{0, 1, i, kLong, 3, false, false, false};
            if (node.rank == 0) {
                Sending sending(one);
                void* memory = link::allocate_exchanged(own, kLong, 64);
                ASSERT_NE(memory, nullptr);
                std::memcpy(memory, sending.buffer.memory.data(), kLong);
                node.barrier(i);
                sending.request.waits = true;
                start_send(sending.request, *node.channel, memory, kLong, bytes_type(), 1, 3, SendMode::standard);
                progress::wait(sending.request);
                EXPECT_EQ(sending.request.outcome.error, MPI_SUCCESS);
                EXPECT_TRUE(link::free_exchanged(memory));
            } else {
                Receiving receiving(kLong, false);
                start_receive(receiving.request, *node.channel, receiving.buffer.memory.data(), kLong, bytes_type(), 0, 3);
                node.barrier(i);
                progress::wait(receiving.request);
                receiving.expect(one);
            }
        }
        EXPECT_LT(counters.messages_ring + counters.messages_inbox - before, 4u * kMessages);
        EXPECT_EQ(counters.copies, 0u) << "the kernel has copied";
    });
    team.expect_success();
}

TEST(Protocol, TheTableOfCopiesCoversEveryMessage) {
    for (const auto distance : {CopyPath::CacheDistance::close, CopyPath::CacheDistance::near, CopyPath::CacheDistance::far}) {
        const CopyChoice& choice = copy_choice(distance);
        EXPECT_EQ(choice.distance, distance) << choice.name;
        EXPECT_EQ(fragments_up_to(choice, 0), 0u) << choice.name;
        EXPECT_GE(fragments_up_to(choice, 1 << 20), uint64_t{1} << 18) << choice.name;
        for (const uint64_t bytes : {1ull, 16384ull, 16385ull, 100001ull, 131072ull, 524289ull, 3ull << 20}) {
            for (uint64_t rest = bytes, next = 0; rest > 0; rest -= next) {
                next = fragment_bytes(choice, bytes, rest);
                ASSERT_GT(next, 0u);
                ASSERT_LE(next, std::min<uint64_t>(rest, shm::kOutboxPayload));
            }
        }
    }
}

TEST(Protocol, TrafficByEachLongProtocol) {
    for (const char* asked : {"pieces", "kernel", "both", "stream"})
        traffic({0, 0, 0}, {{"STARLING_LONG_PROTOCOL", asked}, {"STARLING_DIRECT_THRESHOLD", "4"}}, true, 8);
}

TEST(Protocol, TrafficBetweenHostsByEachLongProtocol) {
    for (const char* asked : {"pieces", "kernel", "both", "stream"}) {
        Team team(Placement{{0, 0, 0}, {0, 0, 1}});
        traffic(team, {{"STARLING_LONG_PROTOCOL", asked}}, false, 4);
    }
}

}  // namespace
}  // namespace starling::message::test
