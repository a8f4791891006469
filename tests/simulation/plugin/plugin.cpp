// What the library finds in the place of the plugin for InfiniBand and RoCE. The simulation fills it in (devices.cpp).
#include "transport/verbs/device.h"

extern "C" [[gnu::visibility("default")]] starling::verbs::Plugin starling_verbs_plugin;
starling::verbs::Plugin starling_verbs_plugin = {starling::verbs::kPluginVersion, nullptr, nullptr};
