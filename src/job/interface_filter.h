// The interface filter STARLING_IP_INTERFACES, for the processes that use the interfaces and for the daemons that publish their addresses.
#pragma once

#include <cstdint>

namespace starling::job {

/// The interfaces that STARLING_IP_INTERFACES admits: names or networks (10.1.0.0/16), separated by commas; with ^ in front, all but these.
/// Unset: all but loopback, or loopback if there is no other.
class InterfaceFilter {
  public:
    /// Parses `text`, which must outlive the filter. Returns MPI_ERR_ARG with failure_text() if an entry is neither a name nor a network.
    static int parse(const char* text, InterfaceFilter& out);
    bool takes(const char* name, uint32_t address, bool loopback) const;
    bool any() const { return text_ == nullptr; }

  private:
    const char* text_ = nullptr;  ///< text of the filter; nullptr: the variable is unset
    bool but_ = false;
};

}  // namespace starling::job
