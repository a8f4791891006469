#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace farm {

/// A rectangle of the picture in pixels; x grows to the right, y downward, (0, 0) is the upper left corner.
struct Tile {
    int x = 0;
    int y = 0;
    int width = 0;
    int height = 0;

    size_t bytes() const { return size_t(width) * size_t(height) * 3; }
};

/// Cuts a picture into tiles of at most tile_width x tile_height, row by row.
std::vector<Tile> cut(int width, int height, int tile_width, int tile_height);

/// An RGB picture, 8 bits per channel, rows from top to bottom.
class Picture {
  public:
    Picture(int width, int height) : width_(width), height_(height), pixels_(size_t(width) * height * 3) {}

    int width() const { return width_; }
    int height() const { return height_; }
    std::vector<uint8_t>& pixels() { return pixels_; }
    const std::vector<uint8_t>& pixels() const { return pixels_; }

    /// Copies the tile's pixels (tile.bytes() bytes) into their place.
    void paste(const Tile& tile, const uint8_t* tile_pixels);

    /// Returns the pixels of one tile of this picture.
    std::vector<uint8_t> copy(const Tile& tile) const;

    /// Writes an sRGB PNG file. Returns an empty string or an error message.
    std::string write_png(const std::string& path) const;

  private:
    int width_;
    int height_;
    std::vector<uint8_t> pixels_;
};

/// The difference between two pictures of the same size.
struct Difference {
    size_t pixels = 0;  ///< number of pixels with any differing channel
    int largest = 0;    ///< largest difference of a channel, 0..255
};
Difference compare(const Picture& a, const Picture& b);

/// Reads a binary PPM (P6, maximum value 255) from memory. Returns false if the file has another format or is incomplete.
bool parse_ppm(const std::vector<uint8_t>& file, Picture* picture);

}  // namespace farm
