// Collective transfers in two phases: aggregators own disjoint, aligned domains of the file; in each round the data moves between all
// members and the aggregators' buffers (through shared memory within a host, by messages between hosts), and the aggregators read or write
// large runs while the next round's data moves.
#pragma once

#include "collective/core/task.h"
#include "collective/core/view.h"
#include "file/file.h"

namespace starling::file {

/// The bits that the tags of a transfer's messages may have besides those of `ranges`.
inline constexpr int kTwoPhaseTags = 0x60000000;

/// Views of the collective operations of one transfer. Each operation has a tag of its own: the multicasts of two operations under one tag
/// differ by their order only, which does not hold between a multicast and a message.
struct TransferViews {
    static constexpr int kTags = 4;
    collective::View ranges{};   ///< of what all members publish; also of the exchange's messages
    collective::View renewed{};  ///< of the agreement on the caches that are renewed before the transfer
    collective::View result{};   ///< of the agreement on the transfer
    collective::View shown{};    ///< of the agreement on the caches that are renewed after the transfer
    /// Returns views of all members of a file's exchange, under consecutive tags.
    static TransferViews draw(collective::Exchange& exchange);
};

/// A collective transfer of all members of the file. `views`: views drawn for this call. Every member must await the task, even one whose
/// arguments are wrong (`error`: its error class, with failure_text()). The result is the same kind of result on all members: if any failed,
/// all fail. `moved` as in transfer.h. The strategy (two phases, or each for itself) is chosen from what all members published, alike on all.
collective::Task write_together(File& file, TransferViews views, FileTransfer transfer, int error, int64_t& moved);
collective::Task read_together(File& file, TransferViews views, FileTransfer transfer, int error, int64_t& moved);

}  // namespace starling::file
