// The text output of `starling profile show`.
#pragma once

#include <string>

#include "report.h"

namespace starling::analysis {

/// Returns the report as text for a terminal.
std::string show(const Data& report);

/// Returns the rank of an object with "job" and "rank", such as "3"; with its job, as "1.3", if the run has several.
std::string name_of(const Data& report, const Data& process);

/// Returns text such as "1.2 M" or "340": three digits, and a letter for large numbers.
std::string short_number(double number);
/// Returns text such as "1.2 MB".
std::string short_bytes(double bytes);
/// Returns text such as "64 B" or "8 KB" for a power of two.
std::string binary_bytes(double bytes);
/// Returns text such as "1.2 s" or "340 us".
std::string short_time(double seconds);
/// Returns text such as "83 %"; "-" if `whole` is 0.
std::string percent(double part, double whole);

}  // namespace starling::analysis
