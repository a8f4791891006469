// Features of a run that its seed can draw. A defect may show only if two of them are used together, so tests count the runs with each
// pair.
#pragma once

#include <cstdint>
#include <string_view>

namespace starling::simulation {

enum class Feature : uint8_t {
    windows,
    symmetric,
    multicast,
    plans,
    devices,
    persistent,
    encryption,
    deaths,
    spawn,
    ports,
    threads,
    turns,
    survival,
    replace,
    keep,
    files,
    leaving
};
inline constexpr int kFeatures = 17;

const char* name_of(Feature feature);

/// A set of features, by name or by number.
class Features {
  public:
    void add(Feature feature) { bits_ |= 1u << static_cast<int>(feature); }
    bool has(Feature feature) const { return bits_ >> static_cast<int>(feature) & 1; }
    bool operator<(const Features& other) const { return bits_ < other.bits_; }
    bool has_all(Features others) const { return (bits_ & others.bits_) == others.bits_; }
    /// Parses a text such as "windows+deaths". Returns false at an unknown name.
    static bool read(std::string_view text, Features& into);

  private:
    uint32_t bits_ = 0;
};

/// Returns the features that this process's run has used so far.
Features& done();

}  // namespace starling::simulation
