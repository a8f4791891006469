// What STARLING_IP_INTERFACES says, for the processes that use the interfaces and for the daemons that tell others of them.
#pragma once

#include <cstdint>

namespace starling::job {

/// Which interfaces STARLING_IP_INTERFACES chooses: names or networks (10.1.0.0/16), by commas; with ^ in front, all but
/// these. Unset: all but loopback, or loopback if there is nothing else.
class InterfaceFilter {
  public:
    /// `text` must outlive it. MPI_ERR_ARG with failure_text() if an entry can't be a name or a network.
    static int parse(const char* text, InterfaceFilter& out);
    bool takes(const char* name, uint32_t address, bool loopback) const;
    bool any() const { return text_ == nullptr; }

  private:
    const char* text_ = nullptr;  ///< nullptr: not chosen
    bool but_ = false;
};

}  // namespace starling::job
