// Describes requests and message queues for the wait report of this process (progress/wait_report.h).
#pragma once

#include "message/channel.h"
#include "message/request.h"
#include "progress/wait_report.h"

namespace starling::message {

// Describe a receive or a send for the wait report. The variants with void* are callbacks of WaitSite and RequestClass.
void report_receive(const ReceiveRequest& request, progress::WaitReporter& teller);
void report_send(const SendRequest& request, progress::WaitReporter& teller);
inline void report_receive(const void* request, progress::WaitReporter& teller) {
    report_receive(*static_cast<const ReceiveRequest*>(static_cast<const Request*>(request)), teller);
}
inline void report_send(const void* request, progress::WaitReporter& teller) {
    report_send(*static_cast<const SendRequest*>(static_cast<const Request*>(request)), teller);
}
/// Describes an incomplete request of any kind to the wait report, by the function in its RequestClass. A completed one is not reported.
void report_request(const void* request, progress::WaitReporter& teller);

/// Describes a probe: a wait for a message that stays in its queue.
void report_probe(MatchContext& channel, int source, int tag, progress::WaitReporter& teller);

/// The tags of a collective operation's messages: `count` successive ones from `first` on, each of them also with some of the bits
/// `variants`.
struct OperationTags {
    int first = 0, count = 1, variants = 0;
    bool has(int tag) const {
        return static_cast<uint32_t>(tag & ~(variants & ~first)) - static_cast<uint32_t>(first) < static_cast<uint32_t>(count);
    }
};

/// Reports the messages that a collective operation waits for: those of its match context with its tags.
void report_collective(MatchContext& channel, OperationTags tags, progress::WaitReporter& teller);

/// Reports posted receives, open sends and unexpected messages of all match contexts. Implements TellerUpcalls::messages.
void report_messages(progress::WaitReporter& teller);

}  // namespace starling::message
