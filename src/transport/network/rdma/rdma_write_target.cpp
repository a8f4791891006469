// Memory that a peer writes by an RC connection, and says so: by a frame behind the write, or by the write itself. It may do so by that one
// connection, whose queue the region names. When this end of that is closed nothing is written any more, and what was expected is over.
#include <memory>

#include "transport/network/rdma/rc_connection.h"

namespace starling::network {

bool Rc::post_rdma_target(RcConnection& from, void* memory, uint64_t bytes, uint32_t word, transport::RdmaTarget& arrival,
                          transport::Region& region) {
    auto one = std::make_unique<RcArrival>();
    one->loan = from.memory().register_memory(memory, bytes, false, region);
    if (!one->loan) return false;
    RcPort::bind(region, from.queue_->address().queue);
    one->told = &arrival;
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
    if (at_once && connection) broke(*connection, "memory that the peer was to write was withdrawn");
}

/// False: no such word is expected.
bool Rc::on_word(RcConnection& connection, uint32_t word) {
    RcArrival* one = connection.expected_.front();
    while (one && one->word != word) one = connection.expected_.next(one);
    if (!one) return false;
    transport::RdmaTarget& arrival = *one->told;
    cancel_rdma_target(arrival, false);
    arrival.then(arrival, true);
    return true;
}

/// The connection's queue is closed.
void Rc::lose_arrivals(RcConnection& connection) {
    while (RcArrival* const one = connection.expected_.pop_front()) {
        one->connection = nullptr;
        lost_.push_back(one);
    }
}

/// Whoever is told may call off others.
bool Rc::tell_lost() {
    bool any = false;
    for (; RcArrival* const one = lost_.front(); any = true) {
        transport::RdmaTarget& arrival = *one->told;
        cancel_rdma_target(arrival, false);
        arrival.then(arrival, false);
    }
    return any;
}

}  // namespace starling::network
