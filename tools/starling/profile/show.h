// What `starling profile show` says of a run, as text for a terminal.
#pragma once

#include <string>

#include "run.h"

namespace starling::analysis {

struct ShowWish {
    uint32_t top = 10;  ///< rows of a table
    std::string phase;  ///< of this one alone; empty: of all
};

/// A Refusal if there is no phase of that name.
std::string show(const Run& run, const ShowWish& wish = {});

/// "1.2 M", "340": three digits and a letter for what is large.
std::string short_number(double number);
/// "1.2 MB"
std::string short_bytes(double bytes);
/// "1.2 s", "340 us"
std::string short_time(double seconds);
/// "83 %"; "-" of nothing
std::string percent(double part, double whole);

}  // namespace starling::analysis
