#include "progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "povray.h"

namespace farm {
namespace {

constexpr int kBarWidth = 40;
constexpr double kSecondsBetweenLines = 1.0;

}  // namespace

Progress::Progress(int tiles, bool quiet) : tiles_(tiles), quiet_(quiet), terminal_(isatty(STDERR_FILENO)), started_(now()) {}

void Progress::show(int tiles_done, int workers) {
    if (quiet_) return;
    const double time = now();
    const double rate = tiles_done / std::max(time - started_, 1e-9);
    if (terminal_) {
        const int filled = tiles_done * kBarWidth / std::max(tiles_, 1);
        fprintf(stderr, "\r[%s%s] %d/%d tiles  %.1f tiles/s  %d worker%s \033[K", std::string(size_t(filled), '#').c_str(),
                std::string(size_t(kBarWidth - filled), '.').c_str(), tiles_done, tiles_, rate, workers,
                workers == 1 ? "" : "s");
        bar_open_ = true;
    } else if (tiles_done != last_done_ && (time - last_line_ >= kSecondsBetweenLines || tiles_done == tiles_)) {
        fprintf(stderr, "%d/%d tiles, %.1f tiles/s, %d worker%s\n", tiles_done, tiles_, rate, workers, workers == 1 ? "" : "s");
        last_line_ = time;
        last_done_ = tiles_done;
    }
    fflush(stderr);
}

void Progress::say(const std::string& line) {
    if (quiet_) return;
    fprintf(stderr, "%s%s\n", bar_open_ ? "\r\033[K" : "", line.c_str());
    bar_open_ = false;
    fflush(stderr);
}

void Progress::end() {
    if (bar_open_) fputc('\n', stderr);
    bar_open_ = false;
}

}  // namespace farm
