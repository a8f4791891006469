// The parts that all queues of a port share: device, protection domain, completion queue, receive and send buffers, events.
//
// A process uses for a port, with default DeviceOptions and packets of 4096 bytes, 1.3 MB for 256 receive buffers of 4160 bytes and 64 send
// buffers of 4096. The completion queue of 2048 entries and the device's own queues take some 0.3 MB. A connection adds 64 entries of 16
// bytes here and 64 of 256 bytes in the device (an entry holds 192 bytes of a message). That is 17 KB, independent of its traffic, because
// it receives into the shared buffers.
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

class RcQueue;
class Datagrams;
class VerbsPort;

inline constexpr uint32_t kDatagramDepth = 128;
inline constexpr uint32_t kConnectionDepth = 64;
inline constexpr uint32_t kHeader = 40;  ///< bytes of the GRH before a received datagram
static_assert(kHeader % 8 == 0);

/// Kinds of work requests. A wr_id consists of the kind and of the number of the buffer or the position in the queue.
enum class Work : uint32_t { receive, datagram, connection };
constexpr uint64_t work_id(Work work, uint32_t number) { return uint64_t{static_cast<uint32_t>(work)} << 32 | number; }
constexpr Work work_of(uint64_t id) { return static_cast<Work>(id >> 32); }
constexpr uint32_t number_of(uint64_t id) { return static_cast<uint32_t>(id); }

/// A message that is ready to be posted: inline in the work request (if `flags` say so), or in a send buffer.
struct Laid {
    unsigned flags = 0;
    ibv_sge place = {};
    PostedWork sent;
    std::byte small[kInline];  ///< inline data, until it is posted
};

struct VerbsCore {
    ~VerbsCore() { drop(); }

    /// Opens the device; returns false with `problem` on failure.
    bool make(const PortFacts& which, const DeviceOptions& wanted);
    void drop();
    /// Makes the completion queue large enough for `more` further entries.
    bool reserve_completions(uint32_t more);
    void reserve_events();
    /// Returns the memory of a send queue, for PortCounters: our entries, and those of the device, which include inline data.
    uint64_t send_queue_memory(uint32_t depth) const;
    void release_completions(uint32_t fewer) { completions_needed -= fewer; }
    /// Returns the initial attributes common to both kinds of queue pairs.
    ibv_qp_init_attr queue_attributes(ibv_qp_type type, uint32_t depth, void* owner) const;
    void address_to(ibv_ah_attr& to, const uint8_t* gid, uint16_t lid) const;

    /// Passes an event to the caller of poll() if poll() is running and has room; otherwise keeps it for the next call.
    void report(const VerbsEvent& event);
    void report_stored();

    /// Copies the parts, `bytes` in all, into a send buffer or as inline data, one after the other. Returns false if there is no send
    /// buffer now; after_taking() reports when one is free.
    bool lay(const iovec* parts, int count, uint32_t bytes, Laid& out);
    void free_buffer(uint32_t index);

    PortFacts facts;
    DeviceOptions options;
    Problem problem;
    PortCounters counters;
    ibv_context* context = nullptr;
    ibv_pd* domain = nullptr;
    ibv_comp_channel* channel = nullptr;
    ibv_cq* completions = nullptr;
    uint32_t completions_needed = 0;
    uint32_t frame_bytes = 0;
    uint32_t reads = 0;  ///< RDMA reads and atomic operations that a connection may have in progress
    uint32_t inline_bytes = kInline;
    ReceiveStock receive;
    Buffers send;
    bool device_lost = false;  ///< the device no longer exists
    bool starving = false;     ///< a request was refused as busy because no send buffer was free
    bool freed = false;        ///< a send buffer has become free
    /// Connections by queue number, including closed ones with pending work.
    std::unordered_map<uint32_t, RcQueue*> connections;
    std::vector<RcQueue*> finished;  ///< closed connections without pending work
    Chain chain;
    VerbsPort* port = nullptr;

    VerbsEvent* out = nullptr;
    VerbsEvent* out_end = nullptr;
    std::vector<VerbsEvent> stored;
    size_t stored_first = 0;
};

uint32_t total_of(const iovec* parts, int count);

}  // namespace starling::verbs
