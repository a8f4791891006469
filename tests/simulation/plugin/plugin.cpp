// The plugin that the library loads in place of the one for InfiniBand and RoCE. The simulation fills it in (devices.cpp).
#include "transport/verbs/device.h"

extern "C" [[gnu::visibility("default")]] starling::verbs::Plugin starling_verbs_plugin;
starling::verbs::Plugin starling_verbs_plugin = {starling::verbs::kPluginVersion, nullptr, nullptr};
