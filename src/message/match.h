// Matching: decides which receive takes which message (MPI 5.0 section 3.5: in order per sender, wildcards included).
#pragma once

#include <cstdint>
#include <memory>

#include "base/list.h"
#include "base/no_destroy.h"
#include "base/pool.h"
#include "message/protocol/packets.h"
#include "message/request.h"

namespace starling::message {

/// A message that has arrived and is not yet received. MPI_Mprobe takes one out of its queue and returns its address.
struct Unexpected {
    static constexpr uint32_t kMagic = 0x4d736721;
    uint32_t magic = 0;
    uint32_t pool_index = 0;
    MatchContext* channel = nullptr;  ///< match context of the message; null while this process does not know it
    link::Peer* peer = nullptr;
    uint64_t context = 0;
    int source = 0;
    int tag = 0;
    uint32_t sequence = 0;  ///< position among all messages of the sender to this process
    uint64_t bytes = 0;
    bool rendezvous = false;
    Rts offer{};                        ///< rendezvous
    std::unique_ptr<std::byte[]> data;  ///< data of an eager message; null if it is in `small`
    std::byte small[64];
    ListHook bucket_hook, arrival_hook;
    void* communicator = nullptr;  ///< comm::Comm on which an MPI_Message handle holds a reference

    const std::byte* payload() const { return data ? data.get() : small; }
};

/// Posted receives and unexpected messages of one match context. Receives from a given source are hashed by the source; receives from
/// MPI_ANY_SOURCE have a separate list. If both lists have a match, the receive that was posted first gets the message.
struct MatchQueues {
    static constexpr uint32_t kBuckets = 16;
    static uint32_t bucket(int source) { return static_cast<uint32_t>(source) % kBuckets; }

    List<ReceiveRequest, &ReceiveRequest::hook> posted[kBuckets];
    List<ReceiveRequest, &ReceiveRequest::hook> posted_any;
    List<Unexpected, &Unexpected::bucket_hook> unexpected[kBuckets];
    List<Unexpected, &Unexpected::arrival_hook> arrival;
    uint64_t posts = 0;

    /// Returns the first posted receive that matches the message and leaves it in its list; nullptr if there is none.
    ReceiveRequest* find_posted(int source, int tag);
    void post(ReceiveRequest& request);

    /// Returns the first message that matches `source` and `tag` (wildcards allowed) and leaves it in the queues. Its sender may have
    /// cancelled it.
    Unexpected* find(int source, int tag);
    void add(Unexpected& message);
    static void remove(Unexpected& message) {
        message.bucket_hook.unlink();
        message.arrival_hook.unlink();
    }
};

extern NoDestroy<Pool<Unexpected>> unexpected_pool_storage;
inline constinit auto& unexpected_pool = unexpected_pool_storage.value;

// The functions below are inline because every message passes through them.

/// MPI_ANY_TAG matches the application's tags only; negative tags are the library's (MPI 5.0 reserves tags >= 0 for users).
inline bool tag_matches(int wanted, int tag) { return wanted == tag || (wanted == MPI_ANY_TAG && tag >= 0); }

inline ReceiveRequest* MatchQueues::find_posted(int source, int tag) {
    auto& list = posted[bucket(source)];
    ReceiveRequest* found = list.front();
    while (found && !(found->source == source && tag_matches(found->tag, tag))) found = list.next(found);
    ReceiveRequest* any = posted_any.front();
    while (any && !tag_matches(any->tag, tag)) any = posted_any.next(any);
    if (any && (!found || any->post_order < found->post_order)) found = any;
    return found;
}

inline void MatchQueues::post(ReceiveRequest& request) {
    request.post_order = posts++;
    if (request.source == MPI_ANY_SOURCE)
        posted_any.push_back(&request);
    else
        posted[bucket(request.source)].push_back(&request);
}

inline Unexpected* MatchQueues::find(int source, int tag) {
    if (source == MPI_ANY_SOURCE) {
        Unexpected* m = arrival.front();
        while (m && !tag_matches(tag, m->tag)) m = arrival.next(m);
        return m;
    }
    auto& list = unexpected[bucket(source)];
    Unexpected* m = list.front();
    while (m && !(m->source == source && tag_matches(tag, m->tag))) m = list.next(m);
    return m;
}

}  // namespace starling::message
