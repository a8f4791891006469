// Whole trees of daemons within one process over loopback, for tests of launch::Tree: real sockets and real routing; only the agent is
// replaced.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launch/common/event_loop.h"
#include "launch/tree/implementation.h"

namespace starling::launch {

/// How long a daemon whose parent died may search for another. Generous, because all daemons share one thread here.
#ifdef __SANITIZE_ADDRESS__
constexpr std::chrono::milliseconds kGrace{2500};
#else
constexpr std::chrono::milliseconds kGrace{1200};
#endif

class Forest {
  public:
    explicit Forest(uint32_t fanout, uint32_t seed = 1) : random(seed) {
        settings.key = make_key();
        settings.fanout = fanout;
        settings.interfaces = "127.0.0.1";
        settings.version = "test";
        settings.start_limit = std::chrono::milliseconds(20000);
        settings.heartbeat = std::chrono::milliseconds(100);
        settings.silence_limit = std::chrono::milliseconds(5000);
        settings.grace = kGrace;
    }

    ~Forest() {
        nodes.clear();
        root.reset();
    }

    /// Creates the root. Call it after changing the settings.
    void plant() {
        auto made = std::make_unique<Tree::Implementation>(loop, settings, std::make_unique<Starter>(*this));
        root_inside = made.get();
        root = std::make_unique<Tree>(std::move(made));
        TreeHandlers handlers;
        handlers.on_ready = [this](TreeHostId host, std::string_view facts) {
            EXPECT_EQ(facts, "facts of " + root->name_of(host));
            EXPECT_TRUE(ready.insert(host).second) << "host " << host << " was reported twice";
        };
        handlers.on_failed = [this](TreeHostId host, const std::string& why) {
            EXPECT_TRUE(failed.emplace(host, why).second);
            EXPECT_FALSE(ready.contains(host));
        };
        handlers.on_lost = [this](TreeHostId host, const std::string& why) {
            EXPECT_TRUE(lost.emplace(host, why).second);
            EXPECT_TRUE(ready.contains(host));
            suspected.erase(host);
        };
        handlers.on_suspect = [this](TreeHostId host, bool doubt) {
            EXPECT_TRUE(ready.contains(host));
            EXPECT_FALSE(lost.contains(host));
            EXPECT_TRUE(doubt ? suspected.insert(host).second : suspected.erase(host) == 1) << host << " twice";
            if (doubt) ever_suspected.insert(host);
        };
        handlers.on_message = [this](const TreeMessage& message) { on_message(kRootHost, message); };
        handlers.on_gathered = [this](std::string_view topic, const std::vector<GatheredPiece>& pieces) {
            on_gathered(topic, pieces);
        };
        root->set_handlers(std::move(handlers));
    }

    std::vector<std::string> names(size_t n, const std::string& stem = "host") {
        std::vector<std::string> list;
        for (size_t i = 0; i < n; ++i) list.push_back(stem + std::to_string(i));
        return list;
    }

    Tree& at(TreeHostId host) { return host == kRootHost ? *root : *nodes.at(host).tree; }
    bool lives(TreeHostId host) const { return host == kRootHost || nodes.contains(host); }

    /// Acts as if the daemon's process were killed: all its connections close at once.
    void kill(TreeHostId host) {
        killed.insert(host);
        nodes.erase(host);
    }

    std::vector<TreeHostId> living() const {
        std::vector<TreeHostId> list;
        for (const auto& [host, node] : nodes) list.push_back(host);
        return list;
    }

    TreeHostId any_living() {
        const auto list = living();
        return list[random() % list.size()];
    }

    /// Adds a step: runs `action`, then waits until `reached` holds. Steps run in sequence.
    void step(std::string name, std::function<void()> action, std::function<bool()> reached) {
        steps_.push_back({std::move(name), std::move(action), std::move(reached)});
    }

    void run(int seconds = 200) {
        const auto limit = loop.after(std::chrono::seconds(seconds), [this] {
            ADD_FAILURE() << "stuck at: " << (at_ < steps_.size() ? steps_[at_].name : "the end");
            loop.stop(1);
        });
        loop.after(std::chrono::milliseconds(0), [this] { advance(true); });
        loop.run();
        loop.cancel(limit);
    }

    struct Node {
        std::unique_ptr<Tree> tree;
        Tree::Implementation* inside = nullptr;
    };

    EventLoop loop;
    std::mt19937 random;
    TreeSettings settings;
    Tree::Implementation* root_inside = nullptr;
    std::unique_ptr<Tree> root;
    std::map<TreeHostId, Node> nodes;
    std::set<TreeHostId> ready, killed, orphaned, told_to_end;
    std::set<TreeHostId> suspected, ever_suspected;  ///< hosts that are doubted now; hosts that were doubted at any time
    std::map<TreeHostId, std::string> failed, lost;
    std::function<void(TreeHostId at, const TreeMessage&)> on_message = [](TreeHostId, const TreeMessage&) {};
    std::function<void(std::string_view topic, const std::vector<GatheredPiece>&)> on_gathered =
        [](std::string_view, const std::vector<GatheredPiece>&) {};
    /// Returns why a host of this name cannot be started; an empty text if it can. Tests replace it.
    std::function<std::string(const std::string&)> trouble = [](const std::string&) { return std::string(); };
    /// Changes the settings that the started host decodes. Tests replace it to simulate a host with other settings.
    std::function<void(TreeSettings&)> misread = [](TreeSettings&) {};
    int most_delay_ms = 5;
    bool ends_when_told = true;

  private:
    struct Step {
        std::string name;
        std::function<void()> action;
        std::function<bool()> reached;
    };

    class Start : public NodeStart {
      public:
        Start(std::shared_ptr<bool> wanted, std::shared_ptr<bool> heard)
            : wanted_(std::move(wanted)), heard_(std::move(heard)) {}
        ~Start() override { *wanted_ = *heard_ = false; }
        bool finished() const override { return !*wanted_; }

      private:
        std::shared_ptr<bool> wanted_;  ///< whether the start is still pending; setting it to false cancels the start
        std::shared_ptr<bool> heard_;   ///< whether failures of the start are still reported to its requester
    };

    class Starter : public NodeStarter {
      public:
        explicit Starter(Forest& forest) : forest_(forest) {}
        std::unique_ptr<NodeStart> start(const Orders& orders, std::function<void(const std::string&)> on_failed) override {
            auto wanted = std::make_shared<bool>(true), heard = std::make_shared<bool>(true);
            const auto tell = [heard, on_failed](const std::string& why) {
                if (*heard) on_failed(why);
            };
            const auto delay = std::chrono::milliseconds(
                forest_.most_delay_ms == 0 ? 0
                                           : static_cast<int>(forest_.random() % static_cast<unsigned>(forest_.most_delay_ms)));
            // Encode and decode the orders, as on their way through the agent.
            const std::string bytes = encode(orders);
            forest_.loop.after(delay, [&forest = forest_, wanted, bytes, tell] {
                if (!*wanted) return;
                Orders copy;
                ASSERT_TRUE(decode(bytes, copy));
                forest.misread(copy.settings);
                *wanted = false;
                const std::string why = forest.trouble(copy.self.name);
                if (!why.empty()) return tell(why);
                forest.sprout(std::move(copy), tell);
            });
            return std::make_unique<Start>(wanted, heard);
        }

      private:
        Forest& forest_;
    };

    void sprout(Orders orders, const std::function<void(const std::string&)>& on_failed) {
        const TreeHostId host = orders.self.host;
        const std::string name = orders.self.name;
        orders.settings.version = "test";
        auto made = std::make_unique<Tree::Implementation>(loop, std::move(orders), std::make_unique<Starter>(*this),
                                                           [this, host, on_failed](const std::string& why) {
                                                               if (why.empty()) return;
                                                               on_failed(why);
                                                               end(host);
                                                           });
        Node& node = nodes[host];
        node.inside = made.get();
        node.tree = std::make_unique<Tree>(std::move(made));
        node.tree->set_facts("facts of " + name);
        TreeHandlers handlers;
        handlers.on_message = [this, host](const TreeMessage& message) { on_message(host, message); };
        handlers.on_orphaned = [this, host](const std::string&) {
            orphaned.insert(host);
            end(host);
        };
        handlers.on_shut_down = [this, host] {
            told_to_end.insert(host);
            if (!ends_when_told) return;
            nodes.at(host).tree->leave(std::chrono::seconds(30), [this, host] { end(host); });
        };
        node.tree->set_handlers(std::move(handlers));
    }

    // Deferred, because a tree must not be destroyed within one of its calls.
    void end(TreeHostId host) {
        const Tree* const tree = nodes.contains(host) ? nodes[host].tree.get() : nullptr;
        loop.after(std::chrono::milliseconds(0), [this, host, tree] {
            if (nodes.contains(host) && nodes[host].tree.get() == tree) nodes.erase(host);
        });
    }

    void advance(bool fresh) {
        if (at_ == steps_.size()) return loop.stop(0);
        if (fresh && steps_[at_].action) steps_[at_].action();
        const bool reached = steps_[at_].reached();
        if (reached) ++at_;
        loop.after(std::chrono::milliseconds(reached ? 0 : 2), [this, reached] { advance(reached); });
    }

    std::vector<Step> steps_;
    size_t at_ = 0;
};

}  // namespace starling::launch
