// Lists the ports of all devices, and selects each port's best GID.
#pragma once

#include <infiniband/verbs.h>

#include "transport/verbs/device.h"

namespace starling::verbs {

/// Implements Plugin::list.
int list_ports(PortFacts* out, int most, const DeviceOptions& options);

/// Fills `facts` from an open device. why_not has the reason if the port cannot be used.
void describe_port(ibv_context* context, uint8_t port, const DeviceOptions& options, PortFacts& facts);

/// Opens a device by name; returns null with an error text on failure.
ibv_context* open_device(const char* name, char* problem, size_t size);

constexpr uint32_t bytes_of(ibv_mtu mtu) { return 128u << mtu; }
constexpr ibv_mtu mtu_of_log(uint8_t log) { return static_cast<ibv_mtu>(log < 8 ? 1 : log > 12 ? 5 : log - 7); }

}  // namespace starling::verbs
