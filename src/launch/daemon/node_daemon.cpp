#include "launch/daemon/node_daemon.h"

#include <csignal>
#include <cstdio>

#include "base/error.h"
#include "launch/common/host_facts.h"
#include "launch/process/output.h"

namespace starling::launch {

namespace {

LauncherSettings node_settings(char** argv) {
    LauncherSettings settings;
    settings.name = "starlingd";
    settings.argv = argv;
    return settings;
}

}  // namespace

NodeDaemon::NodeDaemon(EventLoop& loop, Tree& tree, char** argv)
    : loop_(loop), tree_(tree), launcher_(loop, node_settings(argv)) {
    if (!launcher_.prepare()) {
        std::fprintf(stderr, "starlingd: %s\n", failure_text().data());
        loop_.stop(1);
        return;
    }
    tree_.set_facts(encode(own_facts(tree_.addresses_above())));
    launcher_.on_signal = [this](int signal) { on_signal(signal); };
    launcher_.on_other_child = [this](pid_t pid, int status) { tree_.child_exited(pid, status); };
    launcher_.on_print = [this](const std::string& sentence) {
        tree_.send(kRootHost, encode(HostOrder{.kind = OrderKind::print, .text = sentence}));
    };

    deputy_ = std::make_unique<HostAgent>(
        launcher_, tree_.self(),
        [this](uint32_t to, std::string payload, bool bulk) {
            tree_.send(to, std::move(payload), bulk ? Urgency::bulk : Urgency::control);
        },
        [this](const HostOrder& topic, std::string_view piece, const HostSet& contributors, bool bulk) {
            tree_.gather(encode(topic), piece, contributors, bulk ? Urgency::bulk : Urgency::control,
                         topic.kind == OrderKind::want_table);
        });

    TreeHandlers handlers;
    handlers.on_message = [this](const TreeMessage& message) { on_message(message); };
    handlers.on_orphaned = [this](const std::string&) { end(1); };
    handlers.on_shut_down = [this] {
        if (deputy_) deputy_->end_everything();
        ending_ = true;
        tree_.leave(std::chrono::seconds(2), [this] { end(0); });
    };
    tree_.set_handlers(std::move(handlers));
}

void NodeDaemon::on_message(const TreeMessage& message) {
    const bool ours = message.from == kRootHost && (on_client_order(message.payload) || on_word_of_root(message.payload));
    if (!ours) deputy_->on_order(message.from, message.payload);
}

bool NodeDaemon::on_word_of_root(std::string_view payload) {
    HostOrder order;
    if (kind_of(payload) != OrderKind::signal || !decode(payload, order) || order.job != 0) return false;
    tree_.bear_silence_of_root(order.signal == SIGTSTP);
    return true;
}

bool NodeDaemon::on_client_order(std::string_view payload) {
    const OrderKind kind = kind_of(payload);
    HostOrder order;
    if (kind != OrderKind::to_client && kind != OrderKind::serve_clients) return false;
    if (!decode(payload, order)) return false;
    if (kind == OrderKind::to_client) {
        if (relay_) relay_->on_order(order);
        return true;
    }
    relay_ = std::make_unique<ClientRelay>(loop_,
                                           [this](uint32_t to, std::string bytes, bool) { tree_.send(to, std::move(bytes)); });
    // Another daemon of this user has the socket, and serves the clients here.
    if (!relay_->listen(order.text)) relay_.reset();
    return true;
}

NodeDaemon::~NodeDaemon() {
    if (deputy_) deputy_->end_everything();
    launcher_.shut_down();
}

// Handles signals to the daemon itself, which end it with all jobs here. Signals for its ranks arrive through the root.
void NodeDaemon::on_signal(int signal) {
    if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP) end(128 + signal);
}

void NodeDaemon::end(int result) {
    if (deputy_) deputy_->end_everything();
    loop_.stop(result);
}

}  // namespace starling::launch
