#include "transport/verbs/choice.h"

#include <charconv>
#include <string_view>

#include "base/error.h"
#include "mpi.h"

namespace starling::verbs {

namespace {

constexpr size_t kLongestName = 63;

struct PortEntry {
    std::string_view device;
    unsigned port = 0;  ///< number of the port; 0: all ports
};

bool read(std::string_view text, PortEntry& out) {
    const size_t colon = text.find(':');
    out = {text.substr(0, colon), 0};
    if (out.device.empty() || out.device.size() > kLongestName || out.device.find('/') != std::string_view::npos) return false;
    if (colon == std::string_view::npos) return true;
    const std::string_view number = text.substr(colon + 1);
    const char* const end = number.data() + number.size();
    const auto [stop, error] = std::from_chars(number.data(), end, out.port);
    return error == std::errc() && stop == end && out.port >= 1 && out.port <= 255;
}

/// Visits the comma-separated entries until a visit returns true; returns whether one did.
template <class Visit>
bool any_entry(std::string_view text, Visit visit) {
    for (;;) {
        const size_t comma = text.find(',');
        if (visit(text.substr(0, comma))) return true;
        if (comma == std::string_view::npos) return false;
        text.remove_prefix(comma + 1);
    }
}

}  // namespace

int DeviceChoice::parse(const char* text, DeviceChoice& out) {
    out = {};
    if (!text || *text == '\0') return MPI_SUCCESS;
    out.but_ = *text == '^';
    out.text_ = text + out.but_;
    const auto is_wrong = [](std::string_view entry) {
        PortEntry read_entry;
        return !read(entry, read_entry);
    };
    if (!any_entry(out.text_, is_wrong)) return MPI_SUCCESS;
    return fail(MPI_ERR_ARG,
                "STARLING_VERBS_DEVICES: '%s' has an entry that is neither a device nor a port; write for example "
                "mlx5_0,mlx5_1:2 (`starling info --transports` lists them)",
                text);
}

bool DeviceChoice::takes(const char* device, uint8_t port) const {
    if (!text_) return true;
    const bool named = any_entry(text_, [&](std::string_view entry) {
        PortEntry one;
        return read(entry, one) && one.device == device && (one.port == 0 || one.port == port);
    });
    return named != but_;
}

}  // namespace starling::verbs
