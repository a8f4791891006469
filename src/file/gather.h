// Values of all members of a file, for its collective functions.
#pragma once

#include <vector>

#include "collective/collective_request.h"
#include "collective/comm_call.h"
#include "collective/communicator/creation.h"
#include "file/file.h"

namespace starling::file {

/// Gathers one value of each member in `all`, by rank. Collective; blocks. The error may differ between members: agree on it.
template <class Value>
int gather(File& file, const Value& mine, std::vector<Value>& all) {
    all.resize(static_cast<size_t>(file.comm->size));
    collective::CommCall call(*file.comm, true);
    return collective::run(call, collective::allgather(call, &mine, sizeof mine, collective::byte_type(),
                                                       collective::Blocks(all.data(), sizeof mine, collective::byte_type())));
}

}  // namespace starling::file
