#include "message/match.h"

#include "base/no_destroy.h"
#include "base/state.h"

namespace starling::message {

STARLING_STATE NoDestroy<Pool<Unexpected>> unexpected_pool_storage;

void MatchQueues::add(Unexpected& message) {
    unexpected[bucket(message.source)].push_back(&message);
    arrival.push_back(&message);
}

}  // namespace starling::message
