// The ports of all devices, and by which GID a port is best reached.
#pragma once

#include <infiniband/verbs.h>

#include "transport/verbs/device.h"

namespace starling::verbs {

/// As Plugin::list.
int list_ports(PortFacts* out, int most, const Options& options);

/// What an open device says of a port. why_not says if it can't be used.
void describe_port(ibv_context* context, uint8_t port, const Options& options, PortFacts& facts);

/// The context of a device by name; null with a sentence.
ibv_context* open_device(const char* name, char* problem, size_t size);

constexpr uint32_t bytes_of(ibv_mtu mtu) { return 128u << mtu; }
constexpr ibv_mtu mtu_of_log(uint8_t log) { return static_cast<ibv_mtu>(log < 8 ? 1 : log > 12 ? 5 : log - 7); }

}  // namespace starling::verbs
