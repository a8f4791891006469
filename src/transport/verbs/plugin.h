// The plugin for InfiniBand and RoCE, which lies beside the library, and what the kernel says of devices without it.
#pragma once

#include <cstdint>

#include "transport/verbs/device.h"

namespace starling::verbs {

/// Whether the kernel knows a device. One failed opendir() where there never was one.
bool has_device();
/// Changes (most likely) whenever a device comes or goes, or the link of a port does.
uint64_t devices_seen();

enum class Link : uint8_t { gone, down, active };
/// What the kernel says of a port.
Link link_of(const char* device, uint8_t port);

/// Tests have their own: then there is a device. Null: the one beside the library again.
void use_plugin(const Plugin* plugin);
bool plugin_is_a_tests();
/// Loads it, for good. Null with failure_text().
const Plugin* load_plugin();
/// As the variables say.
Options configured_options();

}  // namespace starling::verbs
