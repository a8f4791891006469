// `starlingd node`: what an agent starts on another host.
#pragma once

#include <functional>
#include <memory>

#include "launch/tree/tree.h"

namespace starling::launch {

/// Makes what lives on the node: sets the tree's handlers and facts. It is destroyed before the tree and the loop, and
/// ends the node by loop.stop(code) after Tree::leave() or on_orphaned.
using MakeNodeService = std::function<std::shared_ptr<void>(EventLoop& loop, Tree& tree)>;

/// The whole life of a node: reads its orders from standard input, goes into the background, connects to its
/// parent, and serves until the loop is stopped. Returns main's exit code. Called before any thread exists.
int run_node(const MakeNodeService& make);

}  // namespace starling::launch
