// Which ports of which devices STARLING_VERBS_DEVICES chooses.
#pragma once

#include <cstdint>

namespace starling::verbs {

/// Devices (mlx5_0) and ports of them (mlx5_0:1), by commas; with ^ in front, all but these. Unset: all.
class DeviceChoice {
  public:
    /// `text` must outlive it. MPI_ERR_ARG with failure_text() if an entry can't be a device or a port.
    static int parse(const char* text, DeviceChoice& out);
    bool takes(const char* device, uint8_t port) const;
    bool any() const { return text_ == nullptr; }

  private:
    const char* text_ = nullptr;  ///< null: not chosen
    bool but_ = false;
};

}  // namespace starling::verbs
