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
              send_(kRoot, encode(Order{OrderKind::client, 0, 0, id, static_cast<uint64_t>(frame.kind), {}, frame.payload}),
                    false);
              return true;
          },
          [this](auto id) {
              send_(kRoot, encode(Order{OrderKind::client_gone, 0, 0, id, 0, {}, {}}), false);
          }),
      send_(std::move(send)) {}

bool ClientRelay::listen(std::string_view name) {
    server_.trust_everyone();
    return server_.listen(name);
}

void ClientRelay::on_order(const Order& order) {
    server_.send(order.a, static_cast<control::MessageKind>(order.b), order.bytes);
}

}  // namespace starling::launch
