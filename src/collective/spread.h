// One leader of a host sends to all others: to the network's group or down a tree, as the sender finds better.
#pragma once

#include "collective/cast.h"
#include "collective/task.h"
#include "collective/view.h"

namespace starling::collective {

/// On a view that has a cast: `count` elements from `root` to all others. The root decides alone: if the group takes the
/// message now, it goes there and nowhere else, and is sure to come to every member that lives; else it goes down the binomial tree,
/// as does the news of an error. So who is not the root waits for both, its parent's message and the group's, gets one of them,
/// takes the other wait back, and hands on to its children what came from its parent, nothing of what came from the group: they get it
/// themselves. `by_group`: which way it was, the same for all where there was no error.
///
/// No two under one tag: their messages would be told apart by order alone, which two ways don't have.
///
/// Nobody gets both but after deaths: a root that dies while it sends leaves members that have all of it beside
/// others that don't; these fail, by the group or by the tree, and tell their children, who may have gone on. What
/// they are told then lies unread in a communicator that has lost a member.
Task spread(View v, void* buffer, int64_t count, const Datatype& type, int root, bool& by_group);

}  // namespace starling::collective
