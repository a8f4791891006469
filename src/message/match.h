// Matching: which receive takes which message (MPI 5.0 section 3.5: in order per sender, wildcards included).
#pragma once

#include <cstdint>
#include <memory>

#include "base/list.h"
#include "base/no_destroy.h"
#include "base/pool.h"
#include "message/protocol/packets.h"
#include "message/request.h"

namespace starling::message {

/// A message that has come and is not (yet) received. What MPI_Mprobe returns is the address of one that was
/// taken out of its queue.
struct Unexpected {
    static constexpr uint32_t kMagic = 0x4d736721;
    uint32_t magic = 0;
    uint32_t pool_index = 0;
    MatchContext* channel = nullptr;  ///< null while its communicator is not known here
    link::Peer* peer = nullptr;
    uint64_t context = 0;
    int source = 0;
    int tag = 0;
    uint32_t sequence = 0;  ///< of its sender's messages to this process
    uint64_t bytes = 0;
    bool rendezvous = false;
    Rts offer{};                        ///< rendezvous
    std::unique_ptr<std::byte[]> data;  ///< eager, null if it fits into `small`
    std::byte small[64];
    ListHook bucket_hook, arrival_hook;
    void* communicator = nullptr;  ///< of MPI_Message handles: the comm::Comm it holds a reference of

    const std::byte* payload() const { return data ? data.get() : small; }
};

/// Posted receives and unexpected messages of one channel. Receives with a source are hashed by it; those with
/// MPI_ANY_SOURCE have a list of their own, and the order of posting decides between the two.
struct MatchQueues {
    static constexpr uint32_t kBuckets = 16;
    static uint32_t bucket(int source) { return static_cast<uint32_t>(source) % kBuckets; }

    List<ReceiveRequest, &ReceiveRequest::hook> posted[kBuckets];
    List<ReceiveRequest, &ReceiveRequest::hook> posted_any;
    List<Unexpected, &Unexpected::bucket_hook> unexpected[kBuckets];
    List<Unexpected, &Unexpected::arrival_hook> arrival;
    uint64_t posts = 0;

    /// The first posted receive for this message, left in its list; nullptr if there is none.
    ReceiveRequest* find_posted(int source, int tag);
    void post(ReceiveRequest& request);

    /// The first message for a receive with these (wildcards allowed), left in the queues; its sender may have cancelled it.
    Unexpected* find(int source, int tag);
    void add(Unexpected& message);
    static void take(Unexpected& message) {
        message.bucket_hook.unlink();
        message.arrival_hook.unlink();
    }
};

extern NoDestroy<Pool<Unexpected>> unexpected_pool_storage;
inline constinit auto& unexpected_pool = unexpected_pool_storage.value;

// Inline, as every message goes through them.

/// MPI_ANY_TAG matches tags of the application only; negative ones are ours (MPI 5.0 gives tags >= 0 to
/// users).
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
