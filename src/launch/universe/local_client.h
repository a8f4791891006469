// Who has started this process: a user by mpiexec, or a program that is in need of a launcher. The processes on this host
// are this one's children and share its streams.
#pragma once

#include <optional>
#include <string>

#include "launch/universe/universe.h"

namespace starling::launch {

/// With the launcher and the universe of its jobs.
class LocalClient : public JobClient {
  public:
    /// `tree` as for the Universe.
    LocalClient(EventLoop& loop, const LauncherSettings& settings, std::optional<TreeSettings> tree = {});

    Launcher& launcher() { return launcher_; }
    bool prepare() { return launcher_.prepare(); }
    /// Launcher::adopt, and the universe knows of it.
    bool adopt(const job::JobAddress& address);
    Job& adopt(job::JobSegment&& segment);
    /// Until all jobs have ended. Returns mpiexec's exit code.
    int run() { return launcher_.run(); }

    void say(const std::string& sentence) override { launcher_.say_all(sentence + "\n"); }
    void output(int target, std::string_view lines, std::function<void()> written) override;
    void input_taken() override {}
    void finished(int code) override { loop_.stop(code); }

  protected:
    virtual void on_signal(int signal);

    EventLoop& loop_;
    Launcher launcher_;
    Universe universe_;

  private:
    void suspend();

    int suspensions_ = 0;
    bool suspending_ = false;
};

}  // namespace starling::launch
