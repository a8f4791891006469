#include "launch/daemon/client_relay.h"

#include <algorithm>

#include "base/wire.h"
#include "launch/common/client_protocol.h"
#include "launch/process/process_environment.h"

namespace starling::launch {

namespace {
constexpr uint32_t kRoot = 0;
}

bool submission_for_network(std::string_view payload, std::string& out) {
    Submission submission;
    if (!decode(payload, submission)) {
        if (understands(submission.version)) return false;
        // For an unsupported version the root needs only these two fields, to report the mismatch.
        out = Writer().number(submission.version).string(submission.release).take();
        return true;
    }
    const bool all = std::any_of(submission.spec.programs.begin(), submission.spec.programs.end(),
                                 [](const Program& program) { return program.forward == Forward::all; });
    out = payload;
    if (all) return true;
    submission.environment = forwarded_environment(submission.environment, Forward::usual);
    submission.partial = true;
    out = encode(submission);
    return true;
}

ClientRelay::ClientRelay(EventLoop& loop, HostAgent::SendOrder send)
    : server_(
          loop,
          [this](auto id, const control::ControlFrame& frame) {
              if (frame.payload.size() > control::kMaxRequest) return false;
              HostOrder order{.kind = OrderKind::client,
                              .connection = id,
                              .message = static_cast<uint64_t>(frame.kind),
                              .bytes = frame.payload};
              const bool submits =
                  frame.kind == kind_of(ClientMessage::submit) || frame.kind == kind_of(ClientMessage::preview);
              if (submits && !submission_for_network(frame.payload, order.bytes)) return false;
              send_(kRoot, encode(order), false);
              return true;
          },
          [this](auto id) { send_(kRoot, encode(HostOrder{.kind = OrderKind::client_closed, .connection = id}), false); }),
      send_(std::move(send)) {}

bool ClientRelay::listen(std::string_view name) {
    server_.trust_everyone();
    return server_.listen_at({std::string(name)});
}

void ClientRelay::on_order(const HostOrder& order) {
    server_.send(order.connection, static_cast<control::MessageKind>(order.message), order.bytes);
}

}  // namespace starling::launch
