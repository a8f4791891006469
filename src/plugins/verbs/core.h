// What a port's queues have in common: device, protection domain, completion queue, receive and send buffers, events.
//
// Memory of a process for a port, as Options leave it and with packets of 4096 bytes: 256 receive buffers of 4160 bytes and 64
// send buffers of 4096, 1.3 MB; completion queue of 2048 entries and the device's own queues, some 0.3 MB. A connection adds 64 places of
// 16 bytes here, and 64 of 256 bytes in the device (a place holds 192 bytes of a message): 17 KB, whatever goes over it, for
// it receives into the buffers of all.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "plugins/verbs/buffers.h"
#include "plugins/verbs/send_queue.h"
#include "plugins/verbs/shared_receive_queue.h"
#include "plugins/verbs/work_requests.h"
#include "transport/verbs/device.h"

namespace starling::verbs {

class Connection;
class Datagrams;
class VerbsPort;

inline constexpr uint32_t kDatagramDepth = 128;
inline constexpr uint32_t kConnectionDepth = 64;
inline constexpr uint32_t kHeader = 40;  ///< the GRH before a datagram
static_assert(kHeader % 8 == 0);

/// What wr_id says: which kind of work, and its buffer or position.
enum class Work : uint32_t { receive, datagram, connection };
constexpr uint64_t work_id(Work work, uint32_t number) { return uint64_t{static_cast<uint32_t>(work)} << 32 | number; }
constexpr Work work_of(uint64_t id) { return static_cast<Work>(id >> 32); }
constexpr uint32_t number_of(uint64_t id) { return static_cast<uint32_t>(id); }

/// A message that is laid where the device takes it from: in its place in the queue (`flags` say so), or in a send buffer.
struct Laid {
    unsigned flags = 0;
    ibv_sge place = {};
    Sent sent;
    std::byte small[kInline];  ///< what goes inline, until it is posted
};

struct Core {
    ~Core() { drop(); }

    /// False with `problem`.
    bool make(const PortFacts& which, const Options& wanted);
    void drop();
    /// Makes the completion queue large enough for so many more.
    bool reserve_completions(uint32_t more);
    void reserve_events();
    /// Of a queue that sends, for PortCounters: our places, and those of the device, which have what goes inline in them.
    uint64_t send_queue_memory(uint32_t depth) const;
    void release_completions(uint32_t fewer) { completions_needed -= fewer; }
    /// The attributes that both kinds of queues begin with.
    ibv_qp_init_attr queue_attributes(ibv_qp_type type, uint32_t depth, void* owner) const;
    void address_to(ibv_ah_attr& to, const uint8_t* gid, uint16_t lid) const;

    /// To the caller of poll() if it is in there and has room, else kept for the next.
    void tell(const Event& event);
    void tell_kept();

    /// Lays the parts, `bytes` in all, one after the other. False: there is no send buffer now; after_taking() tells of room.
    bool lay(const iovec* parts, int count, uint32_t bytes, Laid& out);
    void free_buffer(uint32_t index);

    PortFacts facts;
    Options options;
    Problem problem;
    PortCounters counters;
    ibv_context* context = nullptr;
    ibv_pd* domain = nullptr;
    ibv_comp_channel* channel = nullptr;
    ibv_cq* completions = nullptr;
    uint32_t completions_needed = 0;
    uint32_t frame_bytes = 0;
    uint32_t reads = 0;  ///< and updates that a connection has under way at a time
    uint32_t inline_bytes = kInline;
    ReceiveStock receive;
    Buffers send;
    bool gone = false;                                      ///< the device
    bool starving = false;                                  ///< somebody was told busy since no send buffer was free
    bool freed = false;                                     ///< one is
    std::unordered_map<uint32_t, Connection*> connections;  ///< by number, also those that linger
    std::vector<Connection*> finished;                      ///< lingered, and have nothing under way any more
    Chain chain;
    VerbsPort* port = nullptr;

    Event* out = nullptr;
    Event* out_end = nullptr;
    std::vector<Event> kept;
    size_t kept_first = 0;
};

uint32_t total_of(const iovec* parts, int count);

}  // namespace starling::verbs
