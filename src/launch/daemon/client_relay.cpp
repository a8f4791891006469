#include "launch/daemon/client_relay.h"

namespace starling::launch {

namespace {
constexpr uint32_t kRoot = 0;
}

ClientRelay::ClientRelay(EventLoop& loop, Deputy::Send send)
    : server_(
          loop,
          [this](auto id, const control::Frame& frame) {
              if (frame.payload.size() > control::kMaxRequest) return false;
              const Order order{.kind = OrderKind::client,
                                .connection = id,
                                .message = static_cast<uint64_t>(frame.kind),
                                .bytes = frame.payload};
              send_(kRoot, encode(order), false);
              return true;
          },
          [this](auto id) { send_(kRoot, encode(Order{.kind = OrderKind::client_gone, .connection = id}), false); }),
      send_(std::move(send)) {}

bool ClientRelay::listen(std::string_view name) {
    server_.trust_everyone();
    return server_.meet({std::string(name)});
}

void ClientRelay::on_order(const Order& order) {
    server_.send(order.connection, static_cast<control::MessageKind>(order.message), order.bytes);
}

}  // namespace starling::launch
