// Stores the window infos of the members in a window.
#include <algorithm>

#include "window/window.h"

namespace starling::window {

void Column::store(const std::vector<WindowInfo>& claims, uint64_t (*get)(const WindowInfo&)) {
    common_ = get(claims[0]);
    if (std::all_of(claims.begin(), claims.end(), [&](const WindowInfo& claim) { return get(claim) == common_; })) return;
    each_.reserve(claims.size());
    for (const WindowInfo& claim : claims) each_.push_back(get(claim));
}

void WindowInfoTable::store(const std::vector<WindowInfo>& claims, const std::vector<int>& neighbours) {
    near_.reserve(neighbours.size());
    for (const int rank : neighbours) near_.push_back(claims[static_cast<size_t>(rank)]);
    bytes_.store(claims, [](const WindowInfo& claim) { return static_cast<uint64_t>(claim.bytes); });
    disp_unit_.store(claims, [](const WindowInfo& claim) { return static_cast<uint64_t>(claim.disp_unit); });
    key_bytes_.store(claims, [](const WindowInfo& claim) { return claim.key.bytes; });
    id_.store(claims, [](const WindowInfo& claim) { return uint64_t{claim.key.id}; });
    secret_.store(claims, [](const WindowInfo& claim) { return claim.key.secret; });
}

rma::RegionKey WindowInfoTable::key(int rank) const {
    return {secret_.at(rank), key_bytes_.at(rank), static_cast<uint32_t>(id_.at(rank)), 0};
}

}  // namespace starling::window
