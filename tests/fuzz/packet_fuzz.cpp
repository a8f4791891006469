// Packets of another process in our inbox and rings, of any kind and with any contents. A program of one process, with receives of every
// kind posted, must neither crash nor write outside its buffers.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "datatype/datatype.h"
#include "job/job_segment.h"
#include "link/peer.h"
#include "message/match.h"
#include "message/point_to_point.h"
#include "message/protocol/packets.h"
#include "message/receive.h"
#include "progress/engine.h"
#include "transport/shm/region.h"

using namespace starling;

namespace {

constexpr uint64_t kContext = 0x100;
constexpr size_t kBuffer = 256;

class Everyone final : public message::Roster {
  public:
    int size() const override { return 2; }
    link::Process at(int rank) const override { return {link::self().job, static_cast<uint32_t>(rank)}; }
};

/// The process that receives the fuzzer's packets: rank 0 of a job of two.
struct Target {
    Everyone everyone;
    std::unique_ptr<message::MatchContext> channel;
    shm::Inbox* inbox;
    job::JobAddress address;
};

Target& target() {
    static Target* made = [] {
        job::JobSegment segment;
        if (job::JobSegment::create(2, nullptr, 0, segment)) std::abort();
        auto* t = new Target;
        t->address = segment.address();
        // No process reads the replies to rank 1: its inbox fills and stays full.
        link::Job* job = link::adopt_own_job(std::move(segment), 0);
        set_variable("STARLING_SINGLE_COPY", "off");
        link::start();
        message::start();
        t->inbox = &shm::SegmentRegion(job->segment().region(0)).inbox();
        t->channel = std::make_unique<message::MatchContext>(kContext, t->everyone, 0);
        return t;
    }();
    return *made;
}

/// A receive whose buffer has guard bytes around it.
struct Guarded {
    static constexpr std::byte kGuard{0x5a};
    std::vector<std::byte> memory = std::vector<std::byte>(3 * kBuffer, kGuard);
    message::ReceiveRequest request;

    void start(message::MatchContext& channel, int source, int tag) {
        message::start_receive(request, channel, memory.data() + kBuffer, kBuffer, datatype::predefined(MPI_BYTE), source, tag);
    }
    void check() const {
        for (size_t i = 0; i < kBuffer; ++i)
            if (memory[i] != kGuard || memory[2 * kBuffer + i] != kGuard) std::abort();
        if (request.done && request.outcome.bytes > kBuffer) std::abort();
    }
};

/// The bytes of the fuzzer's input that describe one packet: 24 bytes, then the payload.
struct Recipe {
    uint8_t kind, sender, sequence_step, payload_bytes;
    uint32_t claimed_bytes;
    int32_t tag;
    int32_t source;
    uint64_t context;
};
static_assert(sizeof(Recipe) == 24);

void put(Target& t, const Recipe& recipe, const uint8_t* payload, size_t payload_bytes, uint32_t& sequence) {
    shm::Cell* cell = shm::claim(*t.inbox, static_cast<uint32_t>(getpid()));
    if (!cell) return;
    std::memset(cell->payload, 0, shm::Cell::kPayload);
    cell->sender = {t.address.id, t.address.owner_pid, t.address.owner_fd, recipe.sender < 250 ? 1u : recipe.sender, 0};
    cell->header.kind = static_cast<packet::PacketKind>(recipe.kind % 14);
    cell->header.operation = 0;
    cell->header.where = static_cast<packet::PayloadLocation>(recipe.kind >> 6);
    // Use the expected sequence number for most packets, because a message with another number matches no receive.
    cell->header.message.sequence = recipe.sequence_step < 200 ? sequence : sequence + recipe.sequence_step - 220;
    cell->header.message.tag = recipe.tag;
    cell->header.message.source = recipe.source;
    cell->header.message.context = recipe.context;
    cell->header.bytes = recipe.claimed_bytes;
    std::memcpy(cell->payload, payload, std::min<size_t>(payload_bytes, shm::Cell::kPayload));
    shm::publish(*cell);
    link::poll();
    sequence = link::self().job->peer(1)->next_receive;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Target& t = target();
    link::Peer& peer = *link::self().job->peer(1);
    uint32_t sequence = peer.next_receive;
    // A rendezvous message that never ends leaves its receive posted, as in a program that waits. Such receives must stay valid, so they
    // are kept for all inputs.
    static std::vector<std::unique_ptr<Guarded>> waiting;
    for (const int source : {0, 1, MPI_ANY_SOURCE})
        for (const int tag : {1, MPI_ANY_TAG}) {
            waiting.push_back(std::make_unique<Guarded>());
            waiting.back()->start(*t.channel, source, tag);
        }
    while (size >= sizeof(Recipe)) {
        Recipe recipe;
        std::memcpy(&recipe, data, sizeof recipe);
        data += sizeof recipe, size -= sizeof recipe;
        const size_t payload_bytes = std::min<size_t>(recipe.payload_bytes, size);
        put(t, recipe, data, payload_bytes, sequence);
        data += payload_bytes, size -= payload_bytes;
    }
    for (const auto& one : waiting) one->check();
    for (auto& one : waiting) message::cancel_receive(one->request);
    std::erase_if(waiting, [](const auto& one) { return one->request.done; });
    while (message::Unexpected* message = t.channel->queues().arrival.front()) {
        message::MatchQueues::remove(*message);
        message::unexpected_pool.destroy(message);
    }
    peer.controls.clear();
    return 0;
}

namespace {
std::string recipe_of(packet::PacketKind kind, uint32_t bytes, int tag, uint64_t context, const std::string& payload) {
    const Recipe recipe{static_cast<uint8_t>(kind), 1, 0, static_cast<uint8_t>(payload.size()), bytes, tag, 1, context};
    return std::string(reinterpret_cast<const char*>(&recipe), sizeof recipe) + payload;
}
template <class Payload>
std::string recipe_of(packet::PacketKind kind, int tag, uint64_t context, const Payload& payload) {
    return recipe_of(kind, sizeof payload, tag, context, std::string(reinterpret_cast<const char*>(&payload), sizeof payload));
}
message::Rts offer(uint64_t bytes, uint8_t ahead = 0) {
    message::Rts offer;
    offer.bytes = bytes;
    offer.waits = offer.ahead = ahead;
    return offer;
}
}  // namespace

/// Returns well-formed inputs, which the replay driver mutates.
const std::string* fuzz_seeds(size_t& count) {
    using packet::PacketKind;
    static const std::string seeds[] = {
        recipe_of(PacketKind::eager, 5, 1, kContext, "hello") +
            recipe_of(PacketKind::eager, 200, 2, kContext, std::string(200, 'x')),
        recipe_of(PacketKind::rendezvous, 1, kContext, offer(1000)) +
            recipe_of(PacketKind::fragment, 100, 0, 0, std::string(100, 'a')) +
            recipe_of(PacketKind::fragment, 156, 0, 100, std::string(156, 'b')),
        recipe_of(PacketKind::rendezvous, 1, kContext, offer(200, 1)) +
            recipe_of(PacketKind::fragment, 100, 0, 0, std::string(100, 'a')) +
            recipe_of(PacketKind::fragment, 100, 0, 100, std::string(100, 'b')),
        recipe_of(PacketKind::rendezvous, 1, 77, offer(10)) + recipe_of(PacketKind::fetched, 0, 0, message::Fin{0}) +
            recipe_of(PacketKind::clear_to_stream, 0, 0, message::Cts{10, 0, 0, 1, 1}),
        recipe_of(PacketKind::rendezvous, 1, kContext, offer(1000)) +
            recipe_of(PacketKind::share_copy, 0, 0, message::ShareCopy{}),
        recipe_of(PacketKind::open, 4, 0, 0, std::string("\3\0\0\0", 4)) +
            recipe_of(PacketKind::accept, 4, 0, 0, std::string("\1\0\0\0", 4)) + recipe_of(PacketKind::refuse, 0, 0, 0, "") +
            recipe_of(PacketKind::close, 0, 0, 0, ""),
    };
    count = std::size(seeds);
    return seeds;
}
