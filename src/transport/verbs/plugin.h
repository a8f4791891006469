// Loads the plugin for InfiniBand and RoCE. Also reads the devices and link states that the kernel reports, for which no plugin is needed.
#pragma once

#include <cstdint>

#include "transport/verbs/device.h"

namespace starling::verbs {

/// Returns whether the kernel lists a device. Costs one failed opendir() on a host that never had one.
bool has_device();
/// Returns a hash that changes whenever a device appears or disappears, or the link state of a port changes (collisions aside).
uint64_t devices_seen();

enum class Link : uint8_t { gone, down, active };
/// Returns the kernel's state of a port.
Link link_of(const char* device, uint8_t port);

/// Replaces the plugin by one for tests, which counts as a device. Null: the plugin beside the library is used again.
void use_plugin(const Plugin* plugin);
bool plugin_is_a_tests();
/// Loads the plugin, which is never unloaded. Returns null with failure_text() on failure.
const Plugin* load_plugin();
/// Returns the options that the STARLING_VERBS_* variables set.
DeviceOptions configured_options();

}  // namespace starling::verbs
