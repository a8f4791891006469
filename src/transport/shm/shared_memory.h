// Transport shm, for processes of one host. Every process has a region in its job's segment that others can access from the first instant.
// A path puts packets into the inbox there, or on a ring once traffic has earned one.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "transport/connector.h"
#include "transport/shm/outbox_readers.h"
#include "transport/shm/path.h"
#include "transport/shm/region.h"
#include "transport/transport.h"

namespace starling::shm {

inline constexpr transport::Traits kTraits{
    .name = "shm",
    .reaches = "processes on this host: inboxes, and direct rings where they are earned",
    .capabilities = transport::kConnections | transport::kSharesMemory,
    .latency_ns = 200,
    .payload = kRingPayload,
};
static_assert(kRingPayload <= kOutboxPayload);

class SharedMemory final : public transport::Transport, public transport::Connector {
  public:
    SharedMemory(const transport::ProcessAddress& self, transport::Sink& sink);

    /// Returns the outbox, which holds payloads that are too long for a ring's line or an inbox's cell.
    Lending& lending() { return lending_; }

    bool reaches(const transport::ProcessAddress& process) const override { return process.segment->is_local(process.rank); }
    /// Creates a path. Alternatively, the caller constructs a path in its own memory; then detach() does not free it.
    int attach(const transport::ProcessAddress& to, void* user, transport::Path*& out) override;
    void detach(transport::Path& path) override;
    void forget(job::JobId job) override;
    /// Delivers packets from the inbox. The owner of the paths polls the rings by ShmPath::poll_ring().
    bool poll(PollUrgency look) override;
    bool recover() override { return inbox_.skip_dead(); }
    transport::Connector* connector() override { return this; }

    bool earned(uint32_t packets, uint64_t bytes) const override;
    bool has_place() override;
    void acquire_slot(transport::Path& path) override;
    uint32_t describe(transport::Path& path, packet::PacketKind kind, std::byte* offer) override;
    bool is_offer(const std::byte* offer) const override;
    void use(transport::Path& path, packet::PacketKind kind, const std::byte* offer) override;
    void finish(transport::Path& path) override;
    void release_slot(transport::Path& path) override;
    void each_user(void (*visit)(void* user, void* argument), void* argument) override;

  private:
    friend class ShmPath;
    int free_slot();
    ShmPath* sender_of(const Cell& cell, bool& later);

    const transport::ProcessAddress self_;
    transport::Sink& sink_;
    const uint32_t pid_;
    const job::JobAddress address_;  ///< address of this process's job
    const SegmentRegion region_;     ///< ours
    InboxReader inbox_;
    Lending lending_;
    ShmPath* last_sender_ = nullptr;  ///< the path of the last packet from the inbox
    uint64_t retry_at_ = 0;           ///< time (ns) of the next attempt to find the front packet's sender; 0: it is known

    uint64_t taken_ = 0;  ///< bits of the ring slots of our region that are in use
    ShmPath* users_[kRingSlots] = {};
    /// For each ring slot, the process that may still write to it although its job has failed; 0: none. The slot is not reused before the
    /// process has ended.
    pid_t last_writers_[kRingSlots] = {};
};

inline SharedMemory& ShmPath::memory() const { return static_cast<SharedMemory&>(by); }

}  // namespace starling::shm
