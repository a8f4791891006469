// Every order of events: visits all states that can be reached from the first one, each once, and stops at the first
// in which something is wrong, with the events that led there.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace starling::test {

/// `World` is a state of all that takes part. Default-constructed it is the first one; key() gives the same string for
/// states that need not be told apart, and `trace` is for people: what has happened so far.
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
    /// Gives all that can come next to push(), and checks what must hold.
    virtual void expand(const World& world) = 0;
    /// Makes worlds equal whose difference no longer matters.
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

/// Runs it, and makes sure that it has been somewhere.
template <class World>
void explore(Exploration<World>& exploration) {
    exploration.run();
    EXPECT_GT(exploration.states(), 1000u);
    ::testing::Test::RecordProperty("states", static_cast<int>(exploration.states()));
}

}  // namespace starling::test
