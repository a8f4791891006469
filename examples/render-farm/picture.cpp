#include "picture.h"

#include <png.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace farm {

std::vector<Tile> cut(int width, int height, int tile_width, int tile_height) {
    std::vector<Tile> tiles;
    for (int y = 0; y < height; y += tile_height) {
        for (int x = 0; x < width; x += tile_width) {
            tiles.push_back({x, y, std::min(tile_width, width - x), std::min(tile_height, height - y)});
        }
    }
    return tiles;
}

void Picture::paste(const Tile& tile, const uint8_t* tile_pixels) {
    const size_t row = size_t(tile.width) * 3;
    for (int y = 0; y < tile.height; ++y) {
        memcpy(&pixels_[(size_t(tile.y + y) * width_ + tile.x) * 3], tile_pixels + y * row, row);
    }
}

std::vector<uint8_t> Picture::copy(const Tile& tile) const {
    std::vector<uint8_t> out(tile.bytes());
    const size_t row = size_t(tile.width) * 3;
    for (int y = 0; y < tile.height; ++y) { memcpy(&out[y * row], &pixels_[(size_t(tile.y + y) * width_ + tile.x) * 3], row); }
    return out;
}

std::string Picture::write_png(const std::string& path) const {
    FILE* file = fopen(path.c_str(), "wb");
    if (!file) return path + ": " + strerror(errno);
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = png_uint_32(width_);
    image.height = png_uint_32(height_);
    image.format = PNG_FORMAT_RGB;
    const bool written = png_image_write_to_stdio(&image, file, 0, pixels_.data(), width_ * 3, nullptr);
    const bool closed = fclose(file) == 0;
    if (!written) return path + ": " + image.message;
    return closed ? "" : path + ": " + strerror(errno);
}

Difference compare(const Picture& a, const Picture& b) {
    Difference difference;
    const auto &left = a.pixels(), &right = b.pixels();
    for (size_t pixel = 0; pixel < left.size(); pixel += 3) {
        int largest = 0;
        for (size_t i = pixel; i < pixel + 3; ++i) largest = std::max(largest, std::abs(left[i] - right[i]));
        difference.pixels += largest > 0;
        difference.largest = std::max(difference.largest, largest);
    }
    return difference;
}

namespace {

// Returns the next word of a PPM header, after white space and comment lines.
std::string next_word(const std::vector<uint8_t>& file, size_t* position) {
    size_t& p = *position;
    while (p < file.size() && (isspace(file[p]) || file[p] == '#')) {
        if (file[p] == '#') {
            while (p < file.size() && file[p] != '\n') ++p;
        } else {
            ++p;
        }
    }
    std::string word;
    while (p < file.size() && !isspace(file[p])) word += char(file[p++]);
    return word;
}

}  // namespace

bool parse_ppm(const std::vector<uint8_t>& file, Picture* picture) {
    size_t p = 0;
    if (next_word(file, &p) != "P6") return false;
    const int width = atoi(next_word(file, &p).c_str());
    const int height = atoi(next_word(file, &p).c_str());
    if (next_word(file, &p) != "255" || width <= 0 || height <= 0) return false;
    ++p;  // the single white-space character that ends the header
    const size_t bytes = size_t(width) * height * 3;
    if (file.size() < p || file.size() - p < bytes) return false;
    *picture = Picture(width, height);
    memcpy(picture->pixels().data(), file.data() + p, bytes);
    return true;
}

}  // namespace farm
