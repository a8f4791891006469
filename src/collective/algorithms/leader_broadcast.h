// One leader of a host sends to all others: to the network's group or down a tree, as the sender finds better.
#pragma once

#include "collective/core/multicast_sender.h"
#include "collective/core/task.h"
#include "collective/core/view.h"

namespace starling::collective {

/// On a view that has a cast: `count` elements, at least a byte, from `root` to all others. The root decides alone: if the group takes
/// the message now, it goes there and nowhere else, and is sure to come to every member that lives; else it goes down a tree, as does
/// the news of an error: the binomial one, or for long messages one of two children each, in segments. So who is not the root waits
/// for both, its parent's message and the group's, gets one of them, takes the other wait back, and hands on to its children what came
/// from its parent, nothing of what came from the group: they get it themselves.
///
/// No two under one tag: their messages would be told apart by order alone, which two ways don't have.
///
/// The dead. Every member learns by itself that the root has died, and then fails, if the group has not brought all of it: it waits
/// for no parent, since one that has had all from the group has left. Its parent may live, and have the message by the tree: so it
/// leaves receives behind that throw that away (Exchange::throw_away), and its children are told. A parent that has died is an
/// error, too, though the group may bring the message yet: that is refused (Cast::refuse), else its sender would keep it for ever.
/// News of errors are marks: they wait for nobody, and may lie unread in a communicator that has lost a member.
Task spread(View v, void* buffer, int64_t count, const Datatype& type, int root);

}  // namespace starling::collective
