#include "message/protocol/table.h"

#include <cerrno>
#include <iterator>

#include "base/live.h"
#include "message/protocol/both_sided.h"
#include "message/protocol/incoming.h"
#include "message/protocol/kernel_copy.h"
#include "message/protocol/pieces.h"
#include "message/protocol/rdma_read.h"
#include "message/protocol/rdma_write.h"
#include "message/protocol/stream.h"
#include "message/protocol/timed_copy.h"

namespace starling::message {

namespace {

constexpr Protocol kProtocols[] = {
    {.name = "eager",
     .choice = LongProtocol::automatic,
     .when = "up to STARLING_EAGER_LIMIT: the whole message is in one packet; the sender decides",
     .costs = "two copies; neither side waits",
     .instead = "the message is a rendezvous: the receiver chooses one of the protocols below"},
    {.name = "read",
     .choice = LongProtocol::read,
     .when =
         "to another host, if an InfiniBand or RoCE device connects the two processes and the data is one block on both sides",
     .costs =
         "no copy: the receiver's device reads; the sender may compute meanwhile. The memory must be registered the first time",
     .instead = "stream",
     .is_possible = rdma_read::is_possible,
     .pays = rdma_read::pays,
     .start = rdma_read::start,
     .fail = rdma_read::fail},
    {.name = "note",
     .choice = LongProtocol::note,
     .when = "as read, if STARLING_LONG_PROTOCOL selects it",
     .costs = "no copy, but one packet more than read: the sender's device writes, and an immediate notifies the receiver",
     .instead = "stream",
     .is_possible = rdma_write::is_possible,
     .pays = rdma_write::pays,
     .start = rdma_write::start_noted},  // .fail is null: incoming::fail, in the row of `stream`, ends these transfers too
    {.name = "write",
     .choice = LongProtocol::write,
     .when = "as read, if STARLING_LONG_PROTOCOL selects it",
     .costs = "as note, but a separate word behind the write notifies the receiver",
     .instead = "stream",
     .is_possible = rdma_write::is_possible,
     .pays = rdma_write::pays,
     .start = rdma_write::start_chained},
    {.name = "stream",
     .choice = LongProtocol::stream,
     .when = "to another host, always",
     .costs = "an exchange of packets; then TCP moves data from memory to memory, a device's frames or datagrams need two more "
              "copies",
     .instead = "",
     .is_possible = stream::is_possible,
     .pays = stream::pays,
     .start = stream::start,
     .fail = incoming::fail},
    {.name = "pieces",
     .choice = LongProtocol::pieces,
     .when = "within a host, up to STARLING_STREAM_LIMIT, if the sender waits in the library and has a core, but not from "
             "memory of "
             "MPI_Alloc_mem; any size where the kernel can't copy",
     .costs = "two copies that overlap",
     .instead = "",
     .is_possible = pieces::is_possible,
     .pays = pieces::pays,
     .start = pieces::start},  // .fail is null: incoming::fail, in the row of `stream`, ends these transfers too
    {.name = "both",
     .choice = LongProtocol::both,
     .when = "within a host, from STARLING_SPLIT_LIMIT on, unless the core is shared or long messages travel both ways",
     .costs = "one copy, by both processes at the same time",
     .instead = "kernel",
     .is_possible = both_sided::is_possible,
     .pays = both_sided::pays,
     .start = both_sided::start,
     .fail = both_sided::fail},
    {.name = "kernel",
     .choice = LongProtocol::kernel,
     .when = "within a host, otherwise",
     .costs = "one copy, by the receiver; the sender may compute meanwhile",
     .instead = "pieces",
     .is_possible = kernel_copy::is_possible,
     .pays = kernel_copy::pays,
     .start = kernel_copy::start},
};

}  // namespace

const Protocol* protocols(size_t& count) {
    count = std::size(kProtocols);
    return kProtocols;
}

void fetch(const Matched& message) {
    // Do not copy from a failed process, because another process may have taken over its pid.
    if (message.peer().dead || message.bytes == 0) return kernel_copy::settle(message, message.peer().dead ? ESRCH : 0);
    const LongProtocol asked = live(config().long_protocol);
    for (const Protocol& row : kProtocols)
        if (asked != LongProtocol::automatic && row.choice == asked && row.is_possible(message) && row.start(message)) return;
    if (asked == LongProtocol::automatic && timed_copy::applies(message) && timed_copy::start(message)) return;
    for (const Protocol& row : kProtocols)
        if (row.is_possible && row.is_possible(message) && row.pays(message) && row.start(message)) return;
}

void fail_fetches(const Gone& gone) {
    for (const Protocol& row : kProtocols)
        if (row.fail) row.fail(gone);
}

}  // namespace starling::message
