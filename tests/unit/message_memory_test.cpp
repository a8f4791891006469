// An unexpected message for which there is no memory: no part of it is stored, and the transport delivers it again later.
#include <cstdlib>
#include <new>

#include "message/match.h"
#include "message_traffic.h"

namespace {
bool refuse = false;
}

void* operator new[](size_t bytes) {
    void* memory = refuse ? nullptr : std::malloc(bytes);
    if (!memory) throw std::bad_alloc();
    return memory;
}
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace starling::message::test {
namespace {

TEST(Memory, AnUnexpectedMessageIsStoredWholeOrNotAtAllWithoutMemory) {
    Team team({0, 0});
    team.start({}, [](Node& node) {
        constexpr uint64_t kBytes = 800;  // too long for the space within the unexpected entry, and for one packet
        if (node.rank == 0) {
            send_blocking(node, kBytes, 1, 4);
            node.board.stage.store(1);
            node.barrier(0);
            return;
        }
        while (node.board.stage.load() == 0) {}
        refuse = true;
        for (int i = 0; i < 5; ++i) EXPECT_THROW(progress::poll(), std::bad_alloc);
        EXPECT_EQ(unexpected_pool.live(), 0u);
        refuse = false;
        node.wait_for([&] { return node.channel->queues().find(0, 4) != nullptr; });
        EXPECT_EQ(unexpected_pool.live(), 1u);
        Receiving receiving(kBytes, false);
        start_receive(receiving.request, *node.channel, receiving.buffer.memory.data(), receiving.buffer.count, bytes_type(), 0,
                      4);
        progress::wait(receiving.request);
        receiving.expect({0, 1, 0, kBytes, 4, false, false, false});
        EXPECT_EQ(unexpected_pool.live(), 0u);
        node.barrier(0);
    });
    team.expect_success();
}

}  // namespace
}  // namespace starling::message::test
