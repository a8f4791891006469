// The job client in the process of the launcher itself: mpiexec started by a user, or a launcher that a spawning program started. Processes
// on this host are its children and share its streams.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "launch/universe/universe.h"

namespace starling::launch {

/// A job client with its own launcher and universe.
class LocalClient : public JobClient {
  public:
    /// Creates the client with its universe; `tree` is passed to the Universe.
    LocalClient(EventLoop& loop, const LauncherSettings& settings, std::optional<TreeSettings> tree = {});

    Launcher& launcher() { return launcher_; }
    bool prepare() { return launcher_.prepare(); }
    /// Adopts a job as Launcher::adopt() does, and registers it with the universe.
    bool adopt(const job::JobAddress& address);
    LocalJob& adopt(job::JobSegment&& segment);
    /// Runs until all jobs have ended. Returns mpiexec's exit code.
    int run() { return launcher_.run(); }

    void print(const std::string& sentence) override { launcher_.print_all(sentence + "\n"); }
    void output(int target, std::string_view lines, std::function<void()> written) override;
    void input_read() override {}
    void finished(int code) override { loop_.stop(code); }

  protected:
    virtual void on_signal(int signal);
    /// Notifies all other hosts that this process will be stopped, then calls `then`, once. Without the notice, signals for their ranks would not
    /// be sent, and they would treat this process as dead.
    void announce_suspension(std::function<void()> then);

    EventLoop& loop_;
    Launcher launcher_;
    Universe universe_;

  private:
    void suspend();

    int suspensions_ = 0;
    bool suspending_ = false;
};

}  // namespace starling::launch
