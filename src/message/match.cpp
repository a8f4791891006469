#include "message/match.h"

namespace starling::message {

constinit Immortal<Pool<Unexpected>> unexpected_pool_storage;

void MatchQueues::add(Unexpected& message) {
    unexpected[bucket(message.source)].push_back(&message);
    arrival.push_back(&message);
}

}  // namespace starling::message
