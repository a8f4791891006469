// Exhaustive search over all orders of events of a model, for tests of protocols. It visits every reachable state once and stops at the
// first faulty one, with the events that led to it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace starling::test {

/// `World` is a state of the whole model; a default-constructed one is the initial state. key() returns equal strings for equivalent
/// states. `trace` lists the events so far, for the message of a failed test.
template <class World>
class Exploration {
  public:
    virtual ~Exploration() = default;

    void run() {
        push(World{});
        while (!todo_.empty() && !failed_) {
            const World world = std::move(todo_.back());
            todo_.pop_back();
            expand(world);
        }
    }
    size_t states() const { return seen_.size(); }

  protected:
    /// Calls push() with every possible successor of `world`, and checks the invariants.
    virtual void expand(const World& world) = 0;
    /// Removes differences between worlds that no longer matter, so that their keys are equal.
    virtual void tidy(World&) {}

    void push(World&& world) {
        tidy(world);
        if (seen_.insert(world.key()).second) todo_.push_back(std::move(world));
    }
    void fail(const World& world, const char* what) {
        failed_ = true;
        ADD_FAILURE() << what << "\nafter " << world.trace << "\nin " << world.key();
    }

  private:
    bool failed_ = false;
    std::unordered_set<std::string> seen_;
    std::vector<World> todo_;
};

/// Runs the exploration and checks that it visited over 1000 states.
template <class World>
void explore(Exploration<World>& exploration) {
    exploration.run();
    EXPECT_GT(exploration.states(), 1000u);
    ::testing::Test::RecordProperty("states", static_cast<int>(exploration.states()));
}

}  // namespace starling::test
