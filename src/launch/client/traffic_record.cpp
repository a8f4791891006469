#include "launch/client/traffic_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "control/control_protocol.h"

namespace starling::launch {

namespace {

using LineJson = nlohmann::json;

/// Returns whether a line is of a kind that has traffic, by its beginning: other lines need no parsing.
bool is_of_interest(std::string_view line) {
    return line.starts_with(R"({"kind":"phase")") || line.starts_with(R"({"kind":"job")") ||
           line.starts_with(R"({"kind":"end")");
}

}  // namespace

void TrafficRecord::take(std::string_view lines) {
    while (!lines.empty()) {
        const std::string_view line = lines.substr(0, lines.find('\n'));
        lines.remove_prefix(std::min(lines.size(), line.size() + 1));
        if (!is_of_interest(line)) continue;
        // A standing daemon may be of another release: lines of another form are left out.
        try {
            take_line(line);
        } catch (const LineJson::exception&) {}
    }
}

void TrafficRecord::take_line(std::string_view line) {
    const LineJson json = LineJson::parse(line);
    if (json.value("job", 1u) != 0) return;
    const std::string kind = json.value("kind", "");
    if (kind == "job" && size_ == 0) {
        size_ = std::min<uint32_t>(json.value("size", 0u), control::kMaxProcesses);
        host_of_rank_.assign(size_, 0);
        for (const LineJson& host : json.at("hosts")) hosts_.push_back(host.get<std::string>());
        for (const LineJson& place : json.at("places"))
            for (uint32_t i = 0; i < place.at(2).get<uint32_t>(); ++i)
                if (const uint32_t rank = place.at(1).get<uint32_t>() + i, host = place.at(0).get<uint32_t>();
                    rank < size_ && host < hosts_.size())
                    host_of_rank_[rank] = host;
        began_ = std::chrono::steady_clock::now();
    } else if (kind == "phase") {
        const uint32_t rank = json.value("rank", ~0u);
        for (const LineJson& peer : json.at("peers")) {
            const auto other = peer.at(1).get<uint32_t>();
            if (peer.at(0) != 0 || rank >= size_ || other >= size_ || other == rank) continue;
            const auto [a, b] = std::minmax(rank, other);
            PairTraffic& pair = pairs_.try_emplace(uint64_t{a} << 32 | b, PairTraffic{a, b}).first->second;
            for (size_t at = 2; at < 8; at += 2) {
                pair.messages += peer.at(at).get<uint64_t>();
                pair.bytes += peer.at(at + 1).get<uint64_t>();
            }
        }
    } else if (kind == "end" && json.value("how", "") == "finalized") {
        ++finalized_;
        ended_ = std::chrono::steady_clock::now();
    }
}

std::vector<TrafficRecord::PairTraffic> TrafficRecord::pairs() const {
    std::vector<PairTraffic> out;
    for (const auto& [key, pair] : pairs_) out.push_back(pair);
    std::sort(out.begin(), out.end(), [](const PairTraffic& one, const PairTraffic& other) {
        return std::pair(one.a, one.b) < std::pair(other.a, other.b);
    });
    return out;
}

}  // namespace starling::launch
