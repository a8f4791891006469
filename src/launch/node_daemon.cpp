#include "launch/node_daemon.h"

#include <csignal>
#include <cstdio>

#include "base/error.h"
#include "launch/host_facts.h"
#include "launch/output.h"

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
    tree_.set_facts(encode(own_facts()));
    launcher_.on_signal = [this](int signal) { return on_signal(signal); };
    launcher_.on_other_child = [this](pid_t pid, int status) { tree_.child_exited(pid, status); };
    launcher_.on_say = [this](const std::string& sentence) {
        tree_.send(kRootHost, encode(Order{OrderKind::say, 0, 0, 0, 0, sentence, {}}));
    };

    TreeHandlers handlers;
    handlers.on_message = [this](const TreeMessage& message) {
        // The number is known once the tree is joined, which it is by now.
        if (!deputy_) {
            deputy_ = std::make_unique<Deputy>(
                launcher_, tree_.self(), [this](uint32_t to, std::string payload, bool bulk) {
                    tree_.send(to, std::move(payload), bulk ? Urgency::bulk : Urgency::control);
                });
        }
        deputy_->on_order(message.from, message.payload);
    };
    handlers.on_orphaned = [this](const std::string&) { end(1); };
    handlers.on_shut_down = [this] {
        if (deputy_) deputy_->end_everything();
        ending_ = true;
        tree_.leave(std::chrono::seconds(2), [this] { end(0); });
    };
    tree_.set_handlers(std::move(handlers));
}

NodeDaemon::~NodeDaemon() {
    if (deputy_) deputy_->end_everything();
    launcher_.shut_down();
}

// A user who ends the daemon itself means all of it; what goes to its ranks comes through the root.
bool NodeDaemon::on_signal(int signal) {
    if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP) end(128 + signal);
    return true;
}

void NodeDaemon::end(int result) {
    if (deputy_) deputy_->end_everything();
    loop_.stop(result);
}

}  // namespace starling::launch
