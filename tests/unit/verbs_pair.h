// Two ports on two devices of the fake verbs library, and their events, for tests of the verbs plugin.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "fake/fabric.h"
#include "plugins/verbs/plugin.h"

namespace starling::verbs {

struct Told {
    VerbsEvent event;
    std::string text;
};

/// Polls a port, records its events and returns their buffers.
class Listener {
  public:
    Port* port = nullptr;

    void poll(int most = 16) {
        std::vector<VerbsEvent> events(static_cast<size_t>(most));
        const int count = port->poll(events.data(), most);
        for (int i = 0; i < count; ++i) {
            const VerbsEvent& event = events[static_cast<size_t>(i)];
            Told told{event, {}};
            if (event.data) told.text.assign(reinterpret_cast<const char*>(event.data), event.bytes);
            EXPECT_EQ(reinterpret_cast<uintptr_t>(event.data) % 8, 0u);
            if (event.buffer) port->return_buffer(event);
            told_.push_back(std::move(told));
        }
    }
    /// Waits up to ten seconds for the next event of a kind; events of other kinds stay recorded.
    bool next(VerbsEvent::VerbsEventKind kind, Told* out = nullptr) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(200);
        do {
            poll();
            for (size_t i = 0; i < told_.size(); ++i) {
                if (told_[i].event.kind != kind) continue;
                if (out) *out = told_[i];
                told_.erase(told_.begin() + static_cast<std::ptrdiff_t>(i));
                return true;
            }
        } while (std::chrono::steady_clock::now() < end);
        return false;
    }
    std::string next_text(VerbsEvent::VerbsEventKind kind) {
        Told told;
        return next(kind, &told) ? told.text : "nothing came";
    }
    /// Returns how many events of a kind were reported so far.
    size_t count(VerbsEvent::VerbsEventKind kind) {
        for (size_t before = told_.size() + 1; before != told_.size();) {
            before = told_.size();
            poll();
        }
        size_t found = 0;
        for (const Told& told : told_) found += told.event.kind == kind;
        return found;
    }
    void forget() { told_.clear(); }

  private:
    std::deque<Told> told_;
};

class VerbsPair : public testing::Test {
  protected:
    void SetUp() override { fake::reset(); }
    void TearDown() override {
        for (Listener* side : {&a, &b})
            if (side->port) side->port->close();
        EXPECT_EQ(fake::living(), "");
    }

    /// Opens a port of a device that was added. Returns null on failure, with the reason in said_.
    Port* open(const std::string& device) {
        PortFacts facts[32];
        const int count = starling_verbs_plugin.list(facts, 32, &options);
        for (int i = 0; i < count; ++i) {
            if (device != facts[i].device) continue;
            char problem[400] = {};
            Port* port = starling_verbs_plugin.open(&facts[i], &options, problem, sizeof problem);
            said_ = problem;
            return port;
        }
        said_ = "not listed";
        return nullptr;
    }
    void two_ports() {
        fake::add({.name = "fake0"});
        fake::add({.name = "fake1"});
        a.port = open("fake0");
        ASSERT_TRUE(a.port) << said_;
        b.port = open("fake1");
        ASSERT_TRUE(b.port) << said_;
    }
    /// Connects a queue of `a` with a queue of `b`.
    void connect() {
        from = a.port->make_queue(&from_user);
        to = b.port->make_queue(&to_user);
        ASSERT_TRUE(from && to) << a.port->problem() << b.port->problem();
        ASSERT_TRUE(from->connect(to->address())) << a.port->problem();
        ASSERT_TRUE(to->connect(from->address())) << b.port->problem();
    }
    static WorkStatus send(Queue* queue, const std::string& text) {
        const iovec part = {const_cast<char*>(text.data()), text.size()};
        return queue->send(&part, 1);
    }
    static WorkStatus send(Port* port, const VerbsAddress& address, const std::string& text) {
        const iovec part = {const_cast<char*>(text.data()), text.size()};
        return port->send(address, &part, 1);
    }

    DeviceOptions options;
    Listener a, b;
    Queue *from = nullptr, *to = nullptr;  ///< queues of `a` and `b`
    int from_user = 0, to_user = 0;
    std::string said_;
};

}  // namespace starling::verbs
