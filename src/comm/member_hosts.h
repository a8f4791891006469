// The hosts of processes, as numbers on which all processes that know the same roster agree.
#pragma once

#include <string>
#include <vector>

#include "message/channel.h"

namespace starling::comm {

/// Returns a host number for each of the processes first, first + 1, … of a roster. The hosts are numbered from 0 in the order of their
/// first process. Returns an empty vector if a job can't be mapped, because it has ended.
std::vector<int> host_numbers(const message::Roster& roster, int first, int count);

/// Returns the name of the host of a process; empty if its job can't be mapped.
std::string host_name(const message::Roster& roster, int member);

}  // namespace starling::comm
