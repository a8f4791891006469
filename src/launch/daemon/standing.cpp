#include "launch/daemon/standing.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"
#include "control/well_known_socket.h"
#include "launch/common/client_protocol.h"
#include "launch/common/signals.h"
#include "launch/common/text.h"

namespace starling::launch {

namespace {

constexpr size_t kNotesKept = 10;

LauncherSettings root_settings(char** argv) {
    LauncherSettings settings;
    settings.name = "starling";
    settings.argv = argv;
    return settings;
}

const char* state_of(const UniverseHost& host) {
    switch (host.state) {
        case UniverseHost::HostState::starting:
            return "starting";
        case UniverseHost::HostState::up:
            return host.suspected ? "not answering" : "up";
        case UniverseHost::HostState::failed:
            return "failed";
        case UniverseHost::HostState::alias:
        case UniverseHost::HostState::lost:
            break;
    }
    return "lost";
}

}  // namespace

StandingRoot::StandingRoot(EventLoop& loop, char** argv, std::function<void(const std::string&)> tell)
    : loop_(loop), notify_(std::move(tell)), launcher_(loop, root_settings(argv)) {}

int StandingRoot::run(const std::string& hosts, const std::string& prefix) {
    std::vector<HostSlots> list;
    if (const std::string problem = read_hosts(hosts, list); !problem.empty()) {
        notify_(problem);
        return 1;
    }
    heed_all_signals();
    if (!launcher_.prepare()) {
        notify_(std::string(failure_text()));
        launcher_.shut_down();
        return 1;
    }
    TreeSettings settings = TreeSettings::from_config();
    if (!prefix.empty()) settings.program = prefix + "/bin/starlingd";
    universe_ = std::make_unique<Universe>(loop_, launcher_, std::move(settings));
    clients_ = std::make_unique<ClientServer>(loop_, *universe_);
    launcher_.on_signal = [this](int signal) {
        if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP) end(0);
    };
    launcher_.on_print = [this](const std::string& sentence) { note(sentence); };
    universe_->on_print = [this](const std::string& sentence) { note(sentence); };
    universe_->on_client = [this](uint32_t host, const HostOrder& order) {
        if (order.kind == OrderKind::client_closed) return clients_->on_relayed_end(host, order.connection);
        clients_->on_relayed(host, order.connection, static_cast<control::MessageKind>(order.message), order.bytes);
    };
    universe_->on_clients_lost = [this](uint32_t host) { clients_->on_host_lost(host); };
    clients_->send_relayed = [this](uint32_t host, uint64_t connection, control::MessageKind kind, const std::string& payload) {
        universe_->send_to_client(host, connection, kind, payload);
    };
    clients_->on_stop = [this] { end(0); };
    clients_->get_status = [this] { return status(); };
    // Listen first, so that of two simultaneous starts only one starts daemons on the hosts.
    if (!clients_->listen()) {
        const int error = errno;
        const std::string problem = control::held_name_problem(error, universe_socket_name());
        notify_(error == EADDRINUSE ? "standing daemons run already; see: starling daemon status"
                : problem.empty()   ? std::strerror(error)
                                    : problem);
        launcher_.shut_down();
        return 1;
    }
    universe_->add_hosts(list, true, [this](const std::string& problem) { on_ready(problem); });
    return launcher_.run();
}

void StandingRoot::on_ready(const std::string& problem) {
    if (ending_) return;
    if (!problem.empty()) {
        notify_(problem);
        return end(1);
    }
    // Report "ready" only when all hosts listen: otherwise an mpiexec there would not find its daemon, and would run the job by itself.
    universe_->listen_for_clients(universe_socket_name(), [this] { notify_("ready"); });
}

void StandingRoot::note(const std::string& sentence) {
    notes_.push_back(sentence);
    if (notes_.size() > kNotesKept) notes_.pop_front();
}

void StandingRoot::end(int code) {
    if (ending_ || !universe_) return;
    ending_ = true;
    universe_->shut_down([this, code] { loop_.stop(code); });
}

std::string StandingRoot::status() const {
    std::string text = "standing daemons, process " + std::to_string(getpid()) + ": " + number_of(universe_->jobs(), "job") +
                       ", " + number_of(universe_->processes(), "process") + "\n";
    for (const UniverseHost& host : universe_->hosts()) {
        if (!host.offered && host.placed == 0) continue;
        text += "  " + host.name + ": " + state_of(host) + ", " + std::to_string(host.placed) + " of " +
                std::to_string(host.slots ? host.slots : host.facts.cores) + " slots in use" +
                (host.problem.empty() ? "" : "; " + host.problem) + "\n";
    }
    if (const std::string names = universe_->aliases(); !names.empty()) text += "  " + names + "\n";
    for (const std::string& sentence : notes_) text += "  note: " + sentence + "\n";
    return text;
}

}  // namespace starling::launch
