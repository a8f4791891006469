#include "base/version.h"

namespace starling {

namespace {

constexpr std::string_view kWire = " (wire ";

std::string_view first_number(std::string_view text) {
    const size_t at = text.find(kWire);
    if (at == std::string_view::npos) return {};
    text.remove_prefix(at + kWire.size());
    return text.substr(0, text.find('.'));
}

}  // namespace

const char kVersionRemedy[] =
    "they work together if the first numbers of their wire versions are equal: use an mpiexec and a library for which that "
    "holds";

std::string version_text(std::string_view release, uint32_t wire) {
    return std::string(release)
        .append(kWire)
        .append(std::to_string(wire >> 16))
        .append(".")
        .append(std::to_string(wire & 0xffff))
        .append(")");
}

std::string version_text() { return version_text(kThisVersion.release, wire_version()); }

bool understand_each_other(std::string_view one, std::string_view other) {
    const std::string_view wire = first_number(one);
    return one == other || (!wire.empty() && wire == first_number(other));
}

}  // namespace starling
