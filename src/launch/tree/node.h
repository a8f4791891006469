// `starlingd node`: the daemon that a launch agent starts on another host.
#pragma once

#include <functional>
#include <memory>

#include "launch/tree/tree.h"

namespace starling::launch {

/// Creates the service of the node and sets the tree's handlers and facts. The service is destroyed before the tree and the loop. It ends
/// the node by loop.stop(code), after Tree::leave() or on_orphaned.
using MakeNodeService = std::function<std::shared_ptr<void>(EventLoop& loop, Tree& tree)>;

/// Runs a node from start to end: reads its orders from standard input, moves to the background, connects to its parent, and serves until
/// the loop is stopped. Returns main's exit code. Must be called before any thread exists.
int run_node(const MakeNodeService& make);

}  // namespace starling::launch
