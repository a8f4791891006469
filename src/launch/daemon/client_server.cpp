#include "launch/daemon/client_server.h"

#include <deque>

#include "mpi.h"

namespace starling::launch {

using control::MessageKind;

/// An mpiexec that is connected to this server.
class ClientServer::Client : public JobClient {
  public:
    Client(ClientServer& server, ClientKey key) : server_(server), key_(key) {}

    void print(const std::string& sentence) override {
        if (!quiet) output(2, "mpiexec: " + sentence + "\n", nullptr);
    }
    void output(int target, std::string_view lines, std::function<void()> written) override {
        written_.push_back(std::move(written));
        server_.send(key_, kind_of(ClientMessage::output),
                     encode(ClientNotice{static_cast<uint32_t>(target), std::string(lines)}));
    }
    bool write_profile(const std::string& lines) override {
        if (!lines.empty()) server_.send(key_, kind_of(ClientMessage::profile), lines);
        return true;
    }
    void input_read() override { server_.send(key_, kind_of(ClientMessage::taken), {}); }
    void finished(int code) override {
        over = true;
        server_.send(key_, kind_of(ClientMessage::finished), encode(ClientNotice{static_cast<uint32_t>(code), {}}));
    }

    void show_processes(ProcessTable processes, std::function<void()> done) override {
        shown_.push_back(std::move(done));
        server_.send(key_, kind_of(ClientMessage::processes), encode(processes));
    }

    /// Handles the answer to show_processes(), in order.
    void on_shown() {
        if (shown_.empty()) return;
        const auto done = std::move(shown_.front());
        shown_.pop_front();
        done();
    }

    /// Handles the client's answer; it answers each output frame once, in order.
    void on_written() {
        if (written_.empty()) return;
        const auto written = std::move(written_.front());
        written_.pop_front();
        if (written) written();
    }

    bool over = false;
    EventLoop::TimerId timer = 0;

  private:
    ClientServer& server_;
    ClientKey key_;
    std::deque<std::function<void()>> written_, shown_;
};

ClientServer::ClientServer(EventLoop& loop, Universe& universe)
    : loop_(loop),
      universe_(universe),
      server_(
          loop,
          [this](auto id, const control::ControlFrame& frame) {
              return on_frame({0, id}, frame.kind, frame.payload);
          },
          [this](auto id) {
              close_soon({0, id});
          }) {}

ClientServer::~ClientServer() {
    for (auto& [key, client] : clients_) loop_.cancel(client->timer);
}

bool ClientServer::listen() {
    server_.trust_everyone();
    return server_.listen_at({universe_socket_name()});
}

void ClientServer::send(ClientKey key, MessageKind kind, const std::string& payload) {
    if (key.first == 0) {
        server_.send(key.second, kind, payload);
    } else if (send_relayed) {
        send_relayed(key.first, key.second, kind, payload);
    }
}

void ClientServer::on_relayed(uint32_t host, uint64_t connection, MessageKind kind, const std::string& payload) {
    on_frame({host, connection}, kind, payload);
}

void ClientServer::on_relayed_end(uint32_t host, uint64_t connection) { close_soon({host, connection}); }

void ClientServer::on_host_lost(uint32_t host) {
    for (const auto& [key, client] : clients_) {
        if (key.first == host) close_soon(key);
    }
}

bool ClientServer::on_frame(ClientKey key, MessageKind kind, const std::string& payload) {
    if (kind == kind_of(ClientMessage::submit)) return submit(key, payload);
    if (kind == kind_of(ClientMessage::preview)) return preview(key, payload);
    if (kind == MessageKind::status || kind == MessageKind::stop) {
        reply_to_tool(key, kind);
        return true;
    }
    const auto found = clients_.find(key);
    if (found == clients_.end()) return false;
    Client& client = *found->second;
    ClientNotice notice;
    switch (static_cast<ClientMessage>(kind)) {
        case ClientMessage::written:
            client.on_written();
            return true;
        case ClientMessage::list:
            if (!decode(payload, notice) || notice.number > 1) return false;
            universe_.list_processes(client, notice.number == 1);
            return true;
        case ClientMessage::shown:
            client.on_shown();
            return true;
        case ClientMessage::input:
            universe_.input(client, payload);
            return true;
        case ClientMessage::signal:
            if (!decode(payload, notice) || notice.number > 64) return false;
            universe_.signal(client, static_cast<int>(notice.number));
            return true;
        default:
            return false;
    }
}

void ClientServer::reply_to_tool(ClientKey key, MessageKind kind) {
    control::NameReply reply;
    if (kind == MessageKind::status && get_status) reply.text = get_status();
    send(key, MessageKind::reply, encode(reply));
    if (kind == MessageKind::stop && on_stop) on_stop();
}

// Parses a submission. If the daemons can't serve it, answers the client. Returns false for an invalid one; then the connection is closed.
bool ClientServer::accept(ClientKey key, const std::string& payload, std::optional<Submission>& out, SubmissionReply& reply) {
    Submission submission;
    if (clients_.contains(key)) return false;
    if (!decode(payload, submission)) {
        if (understands(submission.version)) return false;
        reply.error_class = MPI_ERR_SPAWN;
        reply.text = "the standing daemons are of Starling " + version_text() + ", and this mpiexec of Starling " +
                     version_text(submission.release, submission.version) + "; " + kVersionRemedy;
        send(key, kind_of(ClientMessage::started), encode(reply));
        return true;
    }
    reply.hosts = universe_.offered();
    reply.text = universe_.refusal(submission.spec);
    reply.unknown_host = !reply.text.empty();
    if (!reply.unknown_host) {
        out = std::move(submission);
        return true;
    }
    reply.error_class = MPI_ERR_SPAWN;
    send(key, kind_of(ClientMessage::started), encode(reply));
    return true;
}

bool ClientServer::preview(ClientKey key, const std::string& payload) {
    std::optional<Submission> submission;
    SubmissionReply reply;
    if (!accept(key, payload, submission, reply)) return false;
    if (submission) send(key, kind_of(ClientMessage::placement), encode(universe_.preview(std::move(submission->spec))));
    return true;
}

bool ClientServer::submit(ClientKey key, const std::string& payload) {
    std::optional<Submission> accepted;
    SubmissionReply reply;
    if (!accept(key, payload, accepted, reply)) return false;
    if (!accepted) return true;
    Submission& submission = *accepted;
    if (submission.version > kFirstWire) reply.version = wire_version();
    Client& client = *(clients_[key] = std::make_unique<Client>(*this, key));
    client.style = submission.style;
    client.verbose = submission.verbose;
    client.quiet = submission.quiet;
    client.lists_processes = submission.is_debugged;
    if (submission.profile) universe_.write_profiles_of(client);
    client.environment = std::move(submission.environment);
    client.whole_environment = !submission.partial;
    client.directory = std::move(submission.directory);
    if (submission.timeout_seconds > 0) {
        const auto seconds = static_cast<int>(submission.timeout_seconds);
        client.timer = loop_.after(std::chrono::seconds(seconds), [this, &client, seconds] {
            client.timer = 0;
            if (!client.over) universe_.time_out(client, seconds);
        });
    }
    universe_.submit(submission.spec, client, [this, key, reply](const PlacedOutcome& outcome) {
        SubmissionReply done = reply;
        done.error_class = outcome.error_class;
        done.text = outcome.text;
        done.unknown_host = outcome.hosts_lost;
        done.cannot_run = outcome.cannot_run;
        done.failed_program = outcome.failed_program;
        send(key, kind_of(ClientMessage::started), encode(done));
    });
    return true;
}

// Closes the client from the loop: a connection may break during a send whose caller still uses the client.
void ClientServer::close_soon(ClientKey key) {
    loop_.after(std::chrono::milliseconds(0), [this, key] { on_close(key); });
}

void ClientServer::on_close(ClientKey key) {
    const auto found = clients_.find(key);
    if (found == clients_.end()) return;
    const std::unique_ptr<Client> client = std::move(found->second);
    clients_.erase(found);
    if (client->timer != 0) loop_.cancel(client->timer);
    if (!client->over) universe_.leave(*client);
}

}  // namespace starling::launch
