#include "window/target_failures.h"

#include "link/remote_peer.h"
#include "message/receive.h"

namespace starling::window {

namespace {

/// Turns off the fast paths to failed targets. The other paths call has_failed_mapped().
void leave_fast_paths() {
    for (Window* const window : windows())
        for (WindowTarget* const remote : window->used)
            if (has_failed_mapped(*remote)) remote->mapped = false;
}

}  // namespace

void watch_targets() { message::watch_failures(leave_fast_paths); }

int why_target_failed(const WindowTarget& remote) { return link::why_dead(*remote.target.peer, remote.rank); }

}  // namespace starling::window
