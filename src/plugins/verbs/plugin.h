// Declares the plugin's exported symbol (transport/verbs/device.h), for a test that links the plugin instead of loading it.
#pragma once

#include "transport/verbs/device.h"

extern "C" [[gnu::visibility("default")]] const starling::verbs::Plugin starling_verbs_plugin;
