// The turn of a transfer in atomic mode through one open file.
#pragma once

#include "base/lock.h"
#include "file/file.h"
#include "progress/engine.h"

namespace starling::file {

/// A position in File::locked_turns, left on destruction. Coroutines await it, and threads call wait(). Leaving it wakes the next one of
/// either kind: a thread that waits might otherwise sleep on for as long as a sleep may last.
class LockedTurn : public collective::QueueTurn {
  public:
    /// Creates an empty turn, which never waits.
    LockedTurn() = default;
    explicit LockedTurn(File& file) { enqueue(file); }
    ~LockedTurn() {
        if (!queued_) return;
        abandon();
        if (threads_at_once()) progress::notify();
    }

    void enqueue(File& file) {
        queued_ = true;
        QueueTurn::enqueue(file.locked_turns);
    }
    void wait() const {
        progress::wait_until([this] { return await_ready(); });
    }

  private:
    bool queued_ = false;
};

}  // namespace starling::file
