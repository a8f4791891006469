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

namespace starling::message {

namespace {

constexpr Protocol kProtocols[] = {
    {.name = "eager",
     .choice = LongProtocol::automatic,
     .when = "up to STARLING_EAGER_LIMIT: the whole message is in one packet; the sender decides",
     .costs = "two copies; nobody waits",
     .instead = "the message is offered: all below, of which the receiver chooses"},
    {.name = "read",
     .choice = LongProtocol::read,
     .when =
         "to another host, if an InfiniBand or RoCE device connects the two processes and the data is one block on both sides",
     .costs =
         "no copy: the receiver's device reads; the sender may compute meanwhile. Memory has to be registered, the first time",
     .instead = "stream",
     .can = rdma_read::can,
     .pays = rdma_read::pays,
     .start = rdma_read::start,
     .fail = rdma_read::fail},
    {.name = "note",
     .choice = LongProtocol::note,
     .when = "as read, if that is asked for",
     .costs = "no copy, but a packet more than by read: the sender's device writes, and the write tells when all is there",
     .instead = "stream",
     .can = rdma_write::can,
     .pays = rdma_write::pays,
     .start = rdma_write::start_noted},  // incoming::fail is stream's
    {.name = "write",
     .choice = LongProtocol::write,
     .when = "as read, if that is asked for",
     .costs = "as note, and a word chained behind the write tells",
     .instead = "stream",
     .can = rdma_write::can,
     .pays = rdma_write::pays,
     .start = rdma_write::start_chained},
    {.name = "stream",
     .choice = LongProtocol::stream,
     .when = "to another host, always",
     .costs = "an exchange of packets, then by TCP from memory to memory, by a device's frames or datagrams two copies more",
     .instead = "",
     .can = stream::can,
     .pays = stream::pays,
     .start = stream::start,
     .fail = incoming::fail},
    {.name = "pieces",
     .choice = LongProtocol::pieces,
     .when =
         "within a host, up to STARLING_STREAM_LIMIT, if the sender waits in the library and has a core; any size where the "
         "kernel can't copy",
     .costs = "two copies beside each other",
     .instead = "",
     .can = pieces::can,
     .pays = pieces::pays,
     .start = pieces::start},  // incoming::fail is stream's
    {.name = "both",
     .choice = LongProtocol::both,
     .when = "within a host, from STARLING_SPLIT_LIMIT on, unless others want the core or messages go both ways",
     .costs = "one copy, by both processes at a time",
     .instead = "kernel",
     .can = both_sided::can,
     .pays = both_sided::pays,
     .start = both_sided::start,
     .fail = both_sided::fail},
    {.name = "kernel",
     .choice = LongProtocol::kernel,
     .when = "within a host, else",
     .costs = "one copy, by the receiver; the sender may compute meanwhile",
     .instead = "pieces",
     .can = kernel_copy::can,
     .pays = kernel_copy::pays,
     .start = kernel_copy::start},
};

}  // namespace

const Protocol* protocols(size_t& count) {
    count = std::size(kProtocols);
    return kProtocols;
}

void fetch(const Matched& message) {
    // The pid of a process that is gone may be another's by now.
    if (message.peer().dead || message.bytes == 0) return kernel_copy::settle(message, message.peer().dead ? ESRCH : 0);
    const LongProtocol asked = live(config().long_protocol);
    for (const Protocol& row : kProtocols)
        if (asked != LongProtocol::automatic && row.choice == asked && row.can(message) && row.start(message)) return;
    for (const Protocol& row : kProtocols)
        if (row.can && row.can(message) && row.pays(message) && row.start(message)) return;
}

void fail_fetches(const Gone& gone) {
    for (const Protocol& row : kProtocols)
        if (row.fail) row.fail(gone);
}

}  // namespace starling::message
