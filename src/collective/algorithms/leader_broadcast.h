// Broadcasts from one leader of a host to all others: by multicast or down a tree, as the sender chooses.
#pragma once

#include "collective/core/multicast_sender.h"
#include "collective/core/task.h"
#include "collective/core/view.h"

namespace starling::collective {

/// Broadcasts `count` elements, at least one byte, from `root` to all others, on a view that has a multicast channel (Cast). The root
/// decides alone. If the multicast group can take the message now, it is sent there only, and reaches every living member reliably.
/// Otherwise the message, or an error, is sent down a tree: a binomial tree or, for long messages, one with two children per rank, in
/// segments. So every other rank waits for both the parent's message and the multicast, receives one and withdraws the other receive. It
/// forwards to its children only what its parent sent; a multicast reaches them directly.
///
/// At most one such broadcast may use a tag: two would be distinguished by order alone, which does not hold between multicast and tree.
///
/// Failures: every member detects by itself that the root has died, and fails unless the multicast delivered everything. It does not wait
/// for its parent, because a parent that received the whole multicast has left the operation. A living parent may still send the message by
/// the tree, so the member leaves receives behind that discard it (Exchange::throw_away), and sends its children the error. The death of a
/// parent is an error, too, although the multicast may still deliver the message: the member refuses it (Cast::refuse), else its sender
/// would keep it forever. Errors travel as error markers. Their sends complete without a receiver, so a marker may stay unread in a
/// communicator that has lost a member.
Task leader_broadcast(View v, void* buffer, int64_t count, const Datatype& type, int root);

}  // namespace starling::collective
