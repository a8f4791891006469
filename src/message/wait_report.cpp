#include "message/wait_report.h"

#include "link/peer.h"
#include "message/context_table.h"
#include "message/match.h"
#include "message/send.h"

namespace starling::message {

namespace {

using OperationKind = WaitReportPage::OperationKind;
using progress::WaitReporter;

/// Limits of the match contexts and messages that are examined. If a process has more, it reports only some.
constexpr uint32_t kMostChannels = 256, kMostMessages = 4096;

uint8_t flags_of(uint64_t context) { return (context & 15) != 0 ? WaitReportPage::kOfCollective : 0; }

void set_peer(WaitReportPage::OperationEntry& operation, const link::Process& process) {
    operation.peer = process.rank;
    operation.peer_job = process.job->address().id;
}

WaitReportPage::OperationEntry wanted(OperationKind kind, MatchContext& channel, int source, int tag) {
    WaitReportPage::OperationEntry operation{};
    operation.kind = kind;
    operation.flags = flags_of(channel.context());
    operation.context = channel.context();
    operation.tag = tag == MPI_ANY_TAG ? WaitReportPage::kAnyTag : tag;
    operation.rank = source == MPI_ANY_SOURCE ? WaitReportPage::kAnyRank : source;
    if (source != MPI_ANY_SOURCE) set_peer(operation, channel.roster().at(source));
    return operation;
}

WaitReportPage::OperationEntry operation_of(const ReceiveRequest& request) {
    if (request.hook.linked()) {
        WaitReportPage::OperationEntry operation =
            wanted(OperationKind::receive, *request.channel, request.source, request.tag);
        operation.bytes = request.capacity;
        return operation;
    }
    WaitReportPage::OperationEntry operation =
        wanted(OperationKind::arriving, *request.channel, request.outcome.source, request.outcome.tag);
    operation.bytes = request.expected;
    operation.moved = request.moved;
    return operation;
}

/// Returns the fields that a send and an unexpected message have in common.
template <class Message>
WaitReportPage::OperationEntry known_message(OperationKind kind, const Message& message, int rank) {
    WaitReportPage::OperationEntry operation{};
    operation.kind = kind;
    operation.flags = flags_of(message.context);
    operation.context = message.context;
    operation.tag = message.tag;
    operation.rank = rank;
    operation.bytes = message.bytes;
    set_peer(operation, {&message.peer->job, message.peer->rank});
    return operation;
}

WaitReportPage::OperationEntry operation_of(const SendRequest& request) {
    WaitReportPage::OperationEntry operation = known_message(OperationKind::send, request, request.destination);
    if (request.stage == SendRequest::Stage::eager || request.stage == SendRequest::Stage::envelope)
        operation.flags |= WaitReportPage::kNotSent;
    operation.moved = request.moved;
    return operation;
}

WaitReportPage::OperationEntry operation_of(const Unexpected& message) {
    return known_message(OperationKind::message, message, message.source);
}

template <class Visit>
void each_posted(MatchContext& channel, Visit visit) {
    MatchQueues& queues = channel.queues();
    for (auto& list : queues.posted)
        for (const ReceiveRequest* r = list.front(); r; r = list.next(const_cast<ReceiveRequest*>(r))) visit(*r);
    for (const ReceiveRequest* r = queues.posted_any.front(); r; r = queues.posted_any.next(const_cast<ReceiveRequest*>(r)))
        visit(*r);
}

void report_posted(WaitReporter& teller) {
    uint32_t looked_at = 0;
    directory.each([&](MatchContext& channel) {
        if (looked_at++ >= kMostChannels) return;
        each_posted(channel, [&](const ReceiveRequest& request) { teller.posted(operation_of(request), &request); });
    });
}

// Reports unexpected messages, first those from senders that a wait names, because the report has room for few.
void report_unexpected(WaitReporter& teller) {
    const std::size_t there = unexpected_pool.live();
    uint32_t told = 0;
    for (const bool wanted_ones : {true, false}) {
        std::size_t seen = 0;
        for (uint32_t i = 0; seen < there && i < kMostMessages; ++i) {
            const Unexpected* message = unexpected_pool.at(i);
            if (!message) continue;
            ++seen;
            // Skip a message that a matched probe has taken, because it can match no other receive.
            if (message->channel && !message->arrival_hook.linked()) continue;
            const WaitReportPage::OperationEntry operation = operation_of(*message);
            if (teller.waits_for_peer(operation.peer_job, operation.peer) != wanted_ones) continue;
            teller.message(operation);
            ++told;
        }
    }
    if (there > kMostMessages && told < there) teller.more_messages(static_cast<uint32_t>(there - told));
}

}  // namespace

void report_receive(const ReceiveRequest& request, WaitReporter& teller) { teller.waits_for(operation_of(request), &request); }

void report_send(const SendRequest& request, WaitReporter& teller) { teller.waits_for(operation_of(request), &request); }

void report_request(const void* r, WaitReporter& teller) {
    const auto& request = *static_cast<const Request*>(r);
    if (!request.done && request.operations && request.operations->report_wait)
        request.operations->report_wait(request, teller);
}

void report_probe(MatchContext& channel, int source, int tag, WaitReporter& teller) {
    teller.waits_for(wanted(OperationKind::probe, channel, source, tag), nullptr);
}

void report_collective(MatchContext& channel, OperationTags tags, WaitReporter& teller) {
    each_posted(channel, [&](const ReceiveRequest& request) {
        if (tags.has(request.tag)) report_receive(request, teller);
    });
    struct Wanted {
        uint64_t context;
        OperationTags tags;
        WaitReporter& teller;
    } sends{channel.context(), tags, teller};
    each_open_send(
        [](const SendRequest& request, void* argument) {
            auto& of = *static_cast<Wanted*>(argument);
            if (request.context == of.context && of.tags.has(request.tag)) report_send(request, of.teller);
        },
        &sends);
}

void report_messages(WaitReporter& teller) {
    teller.begin_posted();
    report_posted(teller);
    teller.begin_sends();
    each_open_send(
        [](const SendRequest& request, void* to) { static_cast<WaitReporter*>(to)->send(operation_of(request), &request); },
        &teller);
    teller.begin_messages();
    report_unexpected(teller);
}

}  // namespace starling::message
