// The interface of a transport on which only silence shows that a process has died: Transport::failure_detection(). link asks a daemon about
// silent processes, and passes the answers to the transport.
#pragma once

#include <cstdint>

namespace starling::transport {

class Path;

class FailureDetection {
  public:
    /// Returns the time (ns) since which data has waited for a sign of life from the process, or for its address; 0: no data waits.
    virtual uint64_t silent_since(const Path& path) const = 0;
    /// Reports that the process is alive, on evidence from outside the path. The process's address is in its segment. `looks`: the process
    /// has been polling, so it should have answered.
    virtual void confirm_alive(Path& path, bool looks) = 0;

  protected:
    ~FailureDetection() = default;
};

}  // namespace starling::transport
