#include "message/senders.h"

#include "base/lock.h"
#include "link/job.h"

namespace starling::message {

Senders senders_of(const MatchContext& channel) {
    Senders senders;
    const link::Process& own = link::self();
    for (int r = 0; r < channel.roster().size(); ++r) {
        const link::Process& process = channel.roster().at(r);
        if (process.job == own.job && process.rank == own.rank) {
            senders.has_own_rank = true;
            senders.may_send |= program_threads_at_once();
        } else if (!link::has_failed_or_ended(process)) {
            senders.may_send = true;
        } else {
            const bool failed = link::has_failed(process);
            senders.has_failure |= failed;
            senders.has_ended = true;
            senders.has_unacknowledged_end |= !channel.acknowledges(r);
            senders.has_unacknowledged_failure |= failed && !channel.acknowledges(r);
        }
    }
    return senders;
}

}  // namespace starling::message
