#pragma once

#include <string>

namespace farm {

/// Prints the progress of the rendering to standard error: a bar that redraws itself on a terminal, otherwise an occasional line.
class Progress {
  public:
    Progress(int tiles, bool quiet);

    /// Shows the state; cheap enough to be called for every tile.
    void show(int tiles_done, int workers);

    /// Prints a separate line above the bar.
    void say(const std::string& line);

    /// Ends the bar's line.
    void end();

  private:
    int tiles_;
    bool quiet_;
    bool terminal_;
    double started_;
    double last_line_ = 0;
    int last_done_ = -1;
    bool bar_open_ = false;
};

}  // namespace farm
