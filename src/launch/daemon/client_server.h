// The standing daemon's server for mpiexec: it receives jobs, and returns their output and exit codes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "control/control_protocol.h"
#include "launch/common/client_protocol.h"
#include "launch/common/frame_server.h"
#include "launch/universe/universe.h"

namespace starling::launch {

/// The server at the universe's root. Clients on its own host use the socket; those on other hosts use the relay of their host.
class ClientServer {
  public:
    ClientServer(EventLoop& loop, Universe& universe);
    ClientServer(const ClientServer&) = delete;
    ClientServer& operator=(const ClientServer&) = delete;
    ~ClientServer();

    /// Returns false and sets errno on failure; EADDRINUSE if the user already has a standing daemon.
    bool listen();
    /// Handle a frame, or the end, of a client that is connected to another host's relay.
    void on_relayed(uint32_t host, uint64_t connection, control::MessageKind kind, const std::string& payload);
    void on_relayed_end(uint32_t host, uint64_t connection);
    /// Handles the loss of a host with all its clients.
    void on_host_lost(uint32_t host);
    /// Sends a frame to a client of another host's relay.
    std::function<void(uint32_t host, uint64_t connection, control::MessageKind, const std::string& payload)> send_relayed;

    std::function<void()> on_stop;            ///< called when a tool orders the daemon to end
    std::function<std::string()> get_status;  ///< returns lines for `starling daemon status`

  private:
    class Client;
    using ClientKey = std::pair<uint32_t, uint64_t>;  ///< a client's host (0: this one), and its connection there
    struct ClientKeyHash {
        size_t operator()(const ClientKey& key) const { return key.second * 0x9e3779b97f4a7c15u + key.first; }
    };

    bool on_frame(ClientKey key, control::MessageKind kind, const std::string& payload);
    bool accept(ClientKey key, const std::string& payload, std::optional<Submission>& out, SubmissionReply& reply);
    bool submit(ClientKey key, const std::string& payload);
    bool preview(ClientKey key, const std::string& payload);
    void reply_to_tool(ClientKey key, control::MessageKind kind);
    void close_soon(ClientKey key);
    void on_close(ClientKey key);
    void send(ClientKey key, control::MessageKind kind, const std::string& payload);

    EventLoop& loop_;
    Universe& universe_;
    FrameServer server_;
    std::unordered_map<ClientKey, std::unique_ptr<Client>, ClientKeyHash> clients_;
};

}  // namespace starling::launch
