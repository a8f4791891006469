// Parses STARLING_VERBS_DEVICES, which selects the InfiniBand and RoCE ports to use.
#pragma once

#include <cstdint>

namespace starling::verbs {

/// A list of devices (mlx5_0) and ports (mlx5_0:1), separated by commas; a leading ^ selects all but these. Unset: all.
class DeviceChoice {
  public:
    /// Parses `text`, which must outlive the result. Returns MPI_ERR_ARG with failure_text() if an entry is not a valid device or port.
    static int parse(const char* text, DeviceChoice& out);
    bool takes(const char* device, uint8_t port) const;
    bool any() const { return text_ == nullptr; }

  private:
    const char* text_ = nullptr;  ///< value of the variable; null: unset, all ports are selected
    bool but_ = false;
};

}  // namespace starling::verbs
