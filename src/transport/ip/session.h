// A session: everything between this process and one peer on the base path, made reliable. A pure protocol: no
// sockets and no clock; time and datagrams are passed in, so that it runs against a simulated network.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/ip/session_carrier.h"

namespace starling::ip {

/// The longest payload of one packet, whatever carries it.
inline constexpr uint32_t kMaxPayload = 64 * 1024;
inline constexpr int kMaxAddresses = 4;  ///< of a peer that are used; also paths by UDP
inline constexpr int kMaxCarriers = 4;   ///< connections of one session at the same time

class Session;

}  // namespace starling::ip
