// Memory that a peer writes once over an RC connection (RDMA target). The peer notifies this process by a frame after the write or by the
// write's immediate. The region names the connection's queue, and only that connection may write. Once this end of the queue is closed
// nothing can be written any more, and the target is lost.
#include <memory>

#include "transport/network/rdma/rc_connection.h"
#include "transport/remote_memory.h"

namespace starling::network {

bool Rc::post_rdma_target(RcConnection& from, void* memory, uint64_t bytes, uint32_t word, transport::RdmaTarget& arrival,
                          transport::RemoteKey& region) {
    auto one = std::make_unique<RcArrival>();
    one->loan = from.memory().register_memory(memory, bytes, false, region);
    if (!one->loan) return false;
    RcPort::bind(region, from.queue_->address().queue);
    one->target = &arrival;
    one->connection = &from;
    one->word = word;
    from.expected_.push_back(one.get());
    arrival.place = one.release();
    return true;
}

void Rc::cancel_rdma_target(transport::RdmaTarget& arrival, bool at_once) {
    auto* const one = static_cast<RcArrival*>(arrival.place);
    if (!one) return;
    RcConnection* const connection = one->connection;
    RcPort::deregister(*one->loan, at_once);
    one->hook.unlink();
    arrival.place = nullptr;
    delete one;
    if (at_once && connection) broke(*connection, "an RDMA target that the peer may be writing was canceled");
}

/// Completes the target with this word. Returns false if there is none.
bool Rc::on_word(RcConnection& connection, uint32_t word) {
    RcArrival* one = connection.expected_.front();
    while (one && one->word != word) one = connection.expected_.next(one);
    if (!one) return false;
    transport::RdmaTarget& arrival = *one->target;
    cancel_rdma_target(arrival, false);
    arrival.then(arrival, true);
    return true;
}

/// Moves the connection's targets to the list of lost ones, because the queue is closed.
void Rc::lose_arrivals(RcConnection& connection) {
    while (RcArrival* const one = connection.expected_.pop_front()) {
        one->connection = nullptr;
        lost_.push_back(one);
    }
}

/// Reports lost targets; a callback may cancel others.
bool Rc::report_lost() {
    bool any = false;
    for (; RcArrival* const one = lost_.front(); any = true) {
        transport::RdmaTarget& arrival = *one->target;
        cancel_rdma_target(arrival, false);
        arrival.then(arrival, false);
    }
    return any;
}

}  // namespace starling::network
