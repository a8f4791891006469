#include "bootstrap/process_mapping.h"

#include <charconv>
#include <map>

namespace starling::bootstrap {

namespace {

struct MappingBlock {
    uint32_t first_host, hosts, per_host;
};

bool consume(std::string_view& text, std::string_view token) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    if (!text.starts_with(token)) return false;
    text.remove_prefix(token.size());
    return true;
}

bool parse_number(std::string_view& text, uint32_t& out) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return true;
}

bool parse_blocks(std::string_view text, std::vector<MappingBlock>& out) {
    if (!consume(text, "(") || !consume(text, "vector")) return false;
    while (consume(text, ",")) {
        MappingBlock block;
        if (!consume(text, "(") || !parse_number(text, block.first_host) || !consume(text, ",") ||
            !parse_number(text, block.hosts) || !consume(text, ",") || !parse_number(text, block.per_host) ||
            !consume(text, ")"))
            return false;
        out.push_back(block);
    }
    return consume(text, ")") && text.empty();
}

// Returns the ranks placed by one pass over the blocks. If it is 0, the mapping is invalid, because the placement would never end.
uint64_t ranks_of_a_pass(const std::vector<MappingBlock>& blocks) {
    uint64_t ranks = 0;
    for (const MappingBlock& block : blocks) ranks += uint64_t{block.hosts} * block.per_host;
    return ranks;
}

}  // namespace

bool parse_process_mapping(std::string_view text, uint32_t size, std::vector<job::Placement>& out, uint32_t& hosts) {
    std::vector<MappingBlock> blocks;
    if (!parse_blocks(text, blocks) || ranks_of_a_pass(blocks) == 0) return false;
    std::vector<uint32_t> host_of_rank;
    std::map<uint32_t, uint32_t> number_of;  // the manager's host numbers need not be dense
    while (host_of_rank.size() < size) {
        for (const MappingBlock& block : blocks) {
            for (uint32_t i = 0; i < block.hosts && block.per_host > 0 && host_of_rank.size() < size; ++i) {
                const auto next = static_cast<uint32_t>(number_of.size());
                const uint32_t host = number_of.emplace(block.first_host + i, next).first->second;
                for (uint32_t n = 0; n < block.per_host && host_of_rank.size() < size; ++n) host_of_rank.push_back(host);
            }
        }
    }
    hosts = static_cast<uint32_t>(number_of.size());
    std::vector<uint32_t> next_local(hosts, 0);
    out = job::fold_placements(host_of_rank, 0, next_local);
    return true;
}

}  // namespace starling::bootstrap
