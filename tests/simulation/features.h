// What a run has of all that can be drawn, of which each may go wrong only where another is: the pairs are what is looked for.
#pragma once

#include <cstdint>
#include <string_view>

namespace starling::simulation {

enum class Feature : uint8_t { windows, symmetric, multicast, plans, devices, persistent, encryption, deaths };
inline constexpr int kFeatures = 8;

const char* name_of(Feature feature);

/// Some of them, by name or by number.
class Features {
  public:
    void add(Feature feature) { bits_ |= 1u << static_cast<int>(feature); }
    bool has(Feature feature) const { return bits_ >> static_cast<int>(feature) & 1; }
    bool operator<(const Features& other) const { return bits_ < other.bits_; }
    bool has_all(Features others) const { return (bits_ & others.bits_) == others.bits_; }
    /// "windows+deaths". False: there is none of such a name.
    static bool read(std::string_view text, Features& into);

  private:
    uint32_t bits_ = 0;
};

/// What the run that this process is has come to do.
Features& done();

}  // namespace starling::simulation
