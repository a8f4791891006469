// What could not be done for a temporary reason, such as a lack of descriptors. check_liveness() tries it again, until the process that is
// concerned is found to have ended. All calls need the library's lock, and keep failure_text() as it is.
#pragma once

#include "link/job.h"
#include "transport/packet.h"

namespace starling::link {

/// Sends a small packet (at most PendingControl::kMost bytes) now, or as soon as a path to the process can be made. Packets to one process
/// stay in order. No effect if the process's job has ended.
void send_when_possible(const Process& to, packet::PacketKind kind, const void* payload, uint32_t bytes);

/// Maps a job now or later, so that its end is noticed although no message was exchanged with it.
void map_when_possible(Job& job);

/// Tries everything again that has failed. For check_liveness().
void retry_failed();

}  // namespace starling::link
