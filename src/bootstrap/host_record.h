// The record that a process publishes in its manager's key-value store: the addresses and port on which it listens. A line of text without
// blanks, since PMI-1 can carry nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "job/job_description.h"

namespace starling::bootstrap {

struct HostRecord {
    job::HostEntry host;
    uint16_t port = 0;  ///< UDP port of the process, never 0
};

std::string encode(const HostRecord& record);
/// Returns false if `text` is not exactly one record with a port and at least one address; `out` is then unspecified.
bool decode(std::string_view text, HostRecord& out);

}  // namespace starling::bootstrap
