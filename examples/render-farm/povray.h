#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "picture.h"

namespace farm {

/// What to render: everything that is the same for all tiles.
struct Job {
    std::string scene;
    int width = 320;
    int height = 240;
    std::vector<std::string> options;  ///< further options for povray, such as +A0.3

    std::vector<char> pack() const;
    static Job unpack(const std::vector<char>& bytes);
};

/// What one call of povray cost.
struct Cost {
    double wall = 0;  ///< seconds from start to exit
    double cpu = 0;   ///< seconds of processor time
};

/// One call of povray, running beside its owner. It never outlives the process that started it.
///
/// A call renders one tile of the picture ("partial output"): povray counts columns and rows from 1, keeps
/// the camera of the whole picture and writes a picture of full size that is black outside the tile. What
/// it computes for a pixel does not depend on the tile: it seeds the jitter of focal blur per pixel
/// and looks at the neighbours beyond the border for anti-aliasing. (Radiosity and anti-aliasing jitter do
/// depend on what was rendered before; jitter is switched off here, radiosity is the scene's affair.)
class Povray {
  public:
    Povray() = default;
    Povray(const Povray&) = delete;
    Povray& operator=(const Povray&) = delete;
    Povray(Povray&& other) noexcept;
    ~Povray();

    /// Starts povray on one tile with the given number of rendering threads. False: see error().
    bool start(const Job& job, const Tile& tile, int threads);

    /// Waits until povray has ended and stores the tile's pixels. False: see error().
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

/// Seconds of a clock that never jumps.
double now();

}  // namespace farm
