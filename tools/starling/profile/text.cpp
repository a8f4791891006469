// Formats numbers for people.
#include <fmt/format.h>

#include <cmath>

#include "show.h"

namespace starling::analysis {

namespace {

std::string three_digits(double number) {
    if (number >= 100 || number == 0) return fmt::format("{:.0f}", number);
    if (number >= 10) return fmt::format("{:.1f}", number);
    return fmt::format("{:.2f}", number);
}

std::string scaled(double number, const char* const (&units)[5]) {
    size_t unit = 0;
    for (; number >= 999.5 && unit < 4; ++unit) number /= 1000;
    return fmt::format("{} {}", unit == 0 ? fmt::format("{:.0f}", number) : three_digits(number), units[unit]);
}

}  // namespace

std::string short_number(double number) {
    if (number < 99999.5) return fmt::format("{:.0f}", number);
    std::string out = scaled(number, {"", "k", "M", "G", "T"});
    if (out.back() == ' ') out.pop_back();
    return out;
}

std::string short_bytes(double bytes) { return scaled(bytes, {"B", "KB", "MB", "GB", "TB"}); }

std::string binary_bytes(double bytes) {
    const char* const units[] = {"B", "KB", "MB", "GB", "TB"};
    size_t unit = 0;
    for (; bytes >= 1024 && unit < 4; ++unit) bytes /= 1024;
    return fmt::format("{:.0f} {}", bytes, units[unit]);
}

std::string short_time(double seconds) {
    if (seconds >= 0.9995 || seconds == 0) return three_digits(seconds) + " s";
    if (seconds >= 0.9995e-3) return three_digits(seconds * 1e3) + " ms";
    return three_digits(seconds * 1e6) + " us";
}

std::string percent(double part, double whole) {
    if (whole <= 0) return "-";
    const double share = 100 * part / whole;
    return share > 0 && share < 0.95 ? fmt::format("{:.1f} %", share) : fmt::format("{:.0f} %", share);
}

}  // namespace starling::analysis
