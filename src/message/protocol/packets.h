// What the message protocols put into packets.
//
//   eager        whole message in one packet
//   rendezvous   Offer; the receiver, once matched, either copies the data itself (kernel copy) and answers
//                `fetched` (a large one both sides copy, both_sided.h; between hosts its device reads, rdma_read.h), or answers `clear_to_stream` and gets `piece`s;
//                or its memory is written by the sender's device (rdma_write.h)
#pragma once

#include <cstdint>

#include "base/copy.h"
#include "transport/transport.h"

namespace starling::message {

/// Payload of a rendezvous packet.
struct Rts {
    uint64_t bytes = 0;
    // Within a host; between hosts a region (set_region), if it is `lent`.
    uint64_t address = 0;  ///< of contiguous data in the sender's memory; 0: must be streamed
    int32_t pid = 0;       ///< of the sender
    uint32_t let_go = 0;   ///< the sender's counter of that name when it was sent: if it differs after the data was read, that
                           ///< may not have been the message's any more (let_go)
    uint32_t serial = 0;   ///< the sender's name for its request
    CopyPath::Reach reach = CopyPath::Reach::near;  ///< what the sender's copies into shared memory have told of the receiver
    uint8_t waits = 0;                              ///< 1: the sender does nothing else until the message is gone
    uint8_t ahead = 0;                              ///< 1: the first pieces follow at once, on the same ring
    uint8_t lent : 1 = 0;                           ///< 1: the receiver's device may read the data
    uint8_t has_verdict : 1 = 0;  ///< 1: a word of the sender says whether it was cancelled (message/match_or_cancel.h)

    void set_region(const transport::Region& region) {
        address = region.word[0];
        pid = static_cast<int32_t>(region.word[1]);
        let_go = static_cast<uint32_t>(region.word[1] >> 32);
        lent = 1;
    }
    transport::Region region() const { return {{address, uint64_t{let_go} << 32 | static_cast<uint32_t>(pid)}}; }
};

static_assert(sizeof(Rts) == 32);

/// Payload of a fetched packet.
struct Fin {
    uint32_t serial;
};

/// Payload of a clear_to_stream packet: "send me the first `bytes`".
struct Cts {
    uint64_t bytes;
    uint32_t send_serial;
    uint32_t receive_serial;
    uint32_t generation;  ///< tells requests that use one receive_serial after the other apart
    uint32_t at_once;     ///< 1: a receive was waiting for all of it, and what was sent ahead is taken; 0: it is not
};
/// The same, if the sender may write the bytes by its device instead: who can't, or does not know of that, sends pieces. It tells of them by
/// `clear.receive_serial`.
struct CtsRdmaWrite {
    Cts clear;
    transport::Region target;
    uint64_t told;  ///< transport::WriteNotice
};
static_assert(sizeof(CtsRdmaWrite) == 48);

/// Payload of a share_copy packet: "write chunks of the message to my memory, from the back".
struct Share {
    uint64_t address;  ///< of the receiver's buffer
    uint64_t bytes;
    uint32_t send_serial;
    int32_t pid;
    uint64_t slot : 16, generation : 48;
};
static_assert(sizeof(Share) == 32);

}  // namespace starling::message
