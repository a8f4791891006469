// The text output of `starling profile show`.
#pragma once

#include <string>

#include "run.h"

namespace starling::analysis {

struct ShowWish {
    uint32_t top = 10;  ///< maximum number of rows in each table
    std::string phase;  ///< name of the only phase to show; empty: all
};

/// Returns the report. Throws a Refusal if there is no phase of that name.
std::string show(const Run& run, const ShowWish& wish = {});

/// Returns text such as "1.2 M" or "340": three digits, and a letter for large numbers.
std::string short_number(double number);
/// Returns text such as "1.2 MB".
std::string short_bytes(double bytes);
/// Returns text such as "1.2 s" or "340 us".
std::string short_time(double seconds);
/// Returns text such as "83 %"; "-" if `whole` is 0.
std::string percent(double part, double whole);

}  // namespace starling::analysis
