#include "bootstrap/pmix_hosts.h"

#include <charconv>

namespace starling::bootstrap {

namespace {

// Returns the text before the separator, and removes both from the front of `text`.
std::string_view split_until(std::string_view& text, char separator) {
    const std::string_view part = text.substr(0, text.find(separator));
    text.remove_prefix(part.size() == text.size() ? part.size() : part.size() + 1);
    return part;
}

bool read_rank(std::string_view text, uint32_t size, uint32_t& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size() && out < size;
}

}  // namespace

bool parse_pmix_hosts(std::string_view text, uint32_t size, std::vector<job::Placement>& placements,
                      std::vector<std::string>& hosts) {
    constexpr uint32_t kNowhere = ~0u;
    std::vector<uint32_t> host_of_rank(size, kNowhere);
    uint32_t placed = 0;
    hosts.clear();
    while (!text.empty()) {
        std::string_view host = split_until(text, ';');
        const std::string_view name = split_until(host, ':');
        if (host.empty()) continue;
        while (!host.empty()) {
            uint32_t rank;
            if (!read_rank(split_until(host, ','), size, rank) || host_of_rank[rank] != kNowhere) return false;
            host_of_rank[rank] = static_cast<uint32_t>(hosts.size());
            ++placed;
        }
        hosts.emplace_back(name);
    }
    if (placed != size || size == 0) return false;
    std::vector<uint32_t> next_local(hosts.size(), 0);
    placements = job::fold_placements(host_of_rank, 0, next_local);
    return true;
}

}  // namespace starling::bootstrap
