// The terminal of the live display.
#pragma once

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace starling::top {

/// The terminal while it shows the jobs: its alternate screen, with keys read one by one. Its former state is restored at the end.
class Terminal {
  public:
    Terminal() : active_(isatty(STDOUT_FILENO) && isatty(STDIN_FILENO)) { take(); }
    ~Terminal() { give_back(); }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;
    bool active() const { return active_; }

    /// Restores the terminal, stops this process, and takes the terminal over again when the process continues.
    void suspend() {
        give_back();
        std::raise(SIGSTOP);
        take();
    }

  private:
    void take() {
        if (!active_ || tcgetattr(STDIN_FILENO, &before_) != 0) return;
        termios raw = before_;
        raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
        std::fputs("\033[?1049h\033[?25l", stdout);
    }
    void give_back() {
        if (!active_) return;
        std::fputs("\033[?25h\033[?1049l", stdout);
        std::fflush(stdout);
        tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    }

    termios before_{};
    bool active_;
};

/// Returns the size of the terminal; 24 lines of 80 columns if it is unknown or too small to use.
inline winsize screen_size() {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 4 || size.ws_col < 20) size = {24, 80, 0, 0};
    return size;
}

}  // namespace starling::top
