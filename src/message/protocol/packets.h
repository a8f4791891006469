// Payloads of the message protocols' packets.
//
//   eager        the whole message in one packet.
//   rendezvous   an RTS. The receiver, once matched, either copies the data itself (kernel copy) and answers with a FIN (`fetched`), or
//                answers with a CTS (`clear_to_stream`) and gets fragments (`fragment`). Variants of the copy: both sides copy a large
//                message (both_sided.h); between hosts the receiver's device reads (rdma_read.h). Variant of the CTS: the sender's
//                device writes into the receiver's memory (rdma_write.h).
#pragma once

#include <cstdint>

#include "base/copy.h"
#include "transport/remote_memory.h"
#include "transport/transport.h"

namespace starling::message {

/// RTS, the payload of a `rendezvous` packet.
struct Rts {
    uint64_t bytes = 0;
    // For a sender on the same host, these fields describe its memory. Between hosts, address, pid and abandoned_sends hold a registered region
    // instead (set_region), if `registered`.
    uint64_t address = 0;  ///< address of contiguous data in the sender's memory; 0: send as fragments
    int32_t pid = 0;       ///< pid of the sender
    /// The sender's count of abandoned sends when it sent this RTS. If the count differs after the data was read, the buffer may already
    /// have been reused.
    uint32_t abandoned_sends = 0;
    uint32_t serial = 0;  ///< request id of the send
    CopyPath::CacheDistance reach =
        CopyPath::CacheDistance::near;  ///< cache distance of the receiver, as the sender's copies have measured it
    uint8_t waits = 0;                  ///< 1: the sender's caller blocks until the message has been sent
    uint8_t ahead = 0;                  ///< 1: the first fragments follow without a CTS, on the ring of this packet
    uint8_t registered : 1 = 0;         ///< 1: the receiver's device may read the data by RDMA
    uint8_t has_verdict : 1 = 0;        ///< 1: the message has a match-or-cancel word (message/match_or_cancel.h)

    void set_region(const transport::RemoteKey& region) {
        address = region.word[0];
        pid = static_cast<int32_t>(region.word[1]);
        abandoned_sends = static_cast<uint32_t>(region.word[1] >> 32);
        registered = 1;
    }
    transport::RemoteKey region() const { return {{address, uint64_t{abandoned_sends} << 32 | static_cast<uint32_t>(pid)}}; }
};

static_assert(sizeof(Rts) == 32);

/// FIN, the payload of a `fetched` packet.
struct Fin {
    uint32_t serial;
};

/// CTS, the payload of a `clear_to_stream` packet: requests the first `bytes` of the message.
struct Cts {
    uint64_t bytes;
    uint32_t send_serial;
    uint32_t receive_serial;
    uint32_t generation;  ///< distinguishes consecutive receives that use one receive_serial
    /// 1: a posted receive had room for the whole message, so fragments that the sender sent ahead of this CTS are accepted; 0: they are
    /// not.
    uint32_t at_once;
};
/// A CTS that also permits an RDMA write. A sender that cannot write, or does not know this extension, sends fragments. An RDMA write names
/// its receive by `clear.receive_serial`.
struct CtsRdmaWrite {
    Cts clear;
    transport::RemoteKey target;
    uint64_t notice;  ///< transport::WriteNotice
};
static_assert(sizeof(CtsRdmaWrite) == 48);

/// Payload of a `share_copy` packet: asks the sender to write chunks of the message into the receiver's memory, from the back.
struct ShareCopy {
    uint64_t address;  ///< address of the receiver's buffer
    uint64_t bytes;
    uint32_t send_serial;
    int32_t pid;
    uint64_t slot : 16, generation : 48;
};
static_assert(sizeof(ShareCopy) == 32);

}  // namespace starling::message
