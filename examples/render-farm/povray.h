#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "picture.h"

namespace farm {

/// The scene, and the povray options that are the same for all tiles.
struct Job {
    std::string scene;
    int width = 320;
    int height = 240;
    std::vector<std::string> options;  ///< further options for povray, such as +A0.3

    std::vector<char> pack() const;
    static Job unpack(const std::vector<char>& bytes);
};

/// The time that a run of povray took.
struct Cost {
    double wall = 0;  ///< seconds from start to exit
    double cpu = 0;   ///< seconds of processor time
};

/// A run of povray, concurrent with its owner. It never outlives the process that started it.
///
/// A run renders one tile of the picture ("partial output"): povray counts columns and rows from 1, keeps the camera of the whole picture
/// and writes a picture of full size that is black outside the tile. The result for a pixel does not depend on the tile, because povray
/// seeds the jitter of focal blur per pixel and includes the neighbors beyond the border in anti-aliasing. (Radiosity and anti-aliasing
/// jitter do depend on the pixels rendered before. Jitter is switched off here; whether radiosity is used depends on the scene.)
class Povray {
  public:
    Povray() = default;
    Povray(const Povray&) = delete;
    Povray& operator=(const Povray&) = delete;
    Povray(Povray&& other) noexcept;
    ~Povray();

    /// Starts povray on one tile with the given number of rendering threads. On failure returns false and sets error().
    bool start(const Job& job, const Tile& tile, int threads);

    /// Waits until povray has ended and stores the tile's pixels. On failure returns false and sets error().
    bool finish(std::vector<uint8_t>* pixels, Cost* cost);

    const std::string& error() const { return error_; }

  private:
    Tile tile_;
    pid_t pid_ = -1;
    int output_ = -1;    ///< povray's standard output: the picture
    int messages_ = -1;  ///< an unlinked file with its standard error: the log
    double started_ = 0;
    std::string error_;
};

/// Returns the seconds of a monotonic clock.
double now();

}  // namespace farm
