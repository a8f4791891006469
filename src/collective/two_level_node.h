// Blocking collectives of two levels whose part within a host goes through its node stage: what two_level.cpp does with
// messages. All members of a host call the same one; other hosts may use messages instead. `part` is the stage of my
// host's members, `v` the whole communicator, whose exchange has hosts(). Ranks are of the view, sizes must fit the stage.
#pragma once

#include "collective/node_exchange.h"
#include "collective/view.h"
#include "datatype/op.h"

namespace starling::collective::two_level {

int barrier(Node& part, View v);
int bcast(Node& part, View v, void* buffer, int64_t count, const Datatype& type, int root);
/// `input` is not MPI_IN_PLACE.
int reduce(Node& part, View v, const void* input, void* receive, int64_t count, const Datatype& type, const datatype::Op& op,
           int root);
int allreduce(Node& part, View v, const void* input, void* receive, int64_t count, const Datatype& type,
              const datatype::Op& op);

}  // namespace starling::collective::two_level
