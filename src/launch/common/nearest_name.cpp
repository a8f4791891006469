#include "launch/common/nearest_name.h"

#include <algorithm>
#include <cstdint>

#include "launch/common/text.h"

namespace starling::launch {

std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& candidates) {
    const std::string wanted = lowercase(name);
    std::string_view nearest;
    size_t edits = SIZE_MAX;
    for (const std::string_view candidate : candidates) {
        const size_t distance = edit_distance(lowercase(candidate), wanted);
        if (distance < edits) nearest = candidate, edits = distance;
    }
    return edits <= std::max<size_t>(1, name.size() / 3) ? nearest : std::string_view();
}

std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& candidates, std::string_view prefix) {
    const std::string_view nearest = nearest_name(name, candidates);
    return nearest.empty() ? "" : "; did you mean '" + std::string(prefix) + std::string(nearest) + "'?";
}

std::string listed(const std::vector<std::string_view>& names) {
    std::string text;
    for (size_t i = 0; i < names.size(); ++i)
        text += std::string(i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + std::string(names[i]);
    return text;
}

}  // namespace starling::launch
