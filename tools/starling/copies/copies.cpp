#include "copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/live.h"
#include "copy_bench.h"
#include "message/protocol/copy_choice.h"
#include "message/protocol/timed_copy.h"

namespace starling {

namespace {

using OrderedJson = nlohmann::ordered_json;
using CacheDistance = CopyPath::CacheDistance;

constexpr uint64_t kAnyLength = ~uint64_t{0};

/// How a message between two cores is transferred, and why.
struct ChosenCopy {
    const char* way;
    std::string reason;
};

/// Returns the bytes up to which a waiting sender's message is sent in fragments (protocol `pieces`); the maximum: any number of bytes.
uint64_t most_in_pieces(const message::CopyChoice& choice) {
    return message::fragments_up_to(choice, static_cast<uint64_t>(live(config().stream_limit)));
}

/// Returns whether the library, which times its messages (message/protocol/timed_copy.h), comes to prefer the kernel's copy to fragments.
bool kernel_is_faster(const CopyTimes& times) {
    const double fragments = times.past_caches < 0 ? times.ordinary : std::min(times.ordinary, times.past_caches);
    return times.kernel >= 0 && times.kernel < message::timed_copy::kClearlyLess * fragments;
}

/// Applies the rule of message/protocol/copy_choice.h to a sender that waits for its message.
ChosenCopy chosen_for(CacheDistance distance, const CopyTimes& times) {
    const LongProtocol asked = live(config().long_protocol);
    const bool kernel_copies = times.kernel >= 0 && live(config().single_copy) != SingleCopy::off;
    if (times.bytes <= static_cast<uint64_t>(live(config().eager_limit))) return {"eager", "at most STARLING_EAGER_LIMIT"};
    if (!kernel_copies) return {"pieces", "the kernel may not copy here"};
    for (const auto& [protocol, name] : {std::pair{LongProtocol::pieces, "pieces"}, std::pair{LongProtocol::kernel, "kernel"},
                                         std::pair{LongProtocol::both, "both"}})
        if (asked == protocol) return {name, "STARLING_LONG_PROTOCOL selects it"};
    const message::CopyChoice& choice = message::copy_choice(distance);
    const uint64_t most = most_in_pieces(choice);
    if (times.bytes <= most && kernel_is_faster(times))
        return {"kernel", "the messages' own times show that it is faster than fragments"};
    if (most == kAnyLength) return {"pieces", fmt::format("any size in class {}", choice.name)};
    const std::string limit = fmt::format("{} bytes, the limit of class {}", most, choice.name);
    if (times.bytes <= most) return {"pieces", "at most " + limit};
    if (times.bytes < static_cast<uint64_t>(live(config().split_limit)))
        return {"kernel", "over " + limit + ", and below STARLING_SPLIT_LIMIT"};
    return {"both", "over " + limit};
}

/// Returns the rule (message/protocol/copy_choice.h), a row per class.
OrderedJson rule() {
    OrderedJson rows = OrderedJson::array();
    for (const message::CopyChoice& choice : message::kCopyChoices) {
        const uint64_t most = most_in_pieces(choice);
        rows.push_back({{"class", choice.name},
                        {"pieces_up_to", most == kAnyLength ? OrderedJson() : OrderedJson(most)},
                        {"both_from", live(config().split_limit)},
                        {"fragment", choice.fragment},
                        {"long_fragment", choice.long_fragment},
                        {"long_from", choice.long_from},
                        {"why", choice.why}});
    }
    return rows;
}

OrderedJson time_or_null(double time) { return time < 0 ? OrderedJson() : OrderedJson(time); }

/// Returns the name of the fastest of the measured ways.
const char* fastest(const CopyTimes& times) {
    std::pair<double, const char*> best{times.ordinary, "ordinary"};
    for (const auto& [time, name] : {std::pair{times.past_caches, "past_caches"}, std::pair{times.kernel, "kernel"}})
        if (time >= 0 && (best.first < 0 || time < best.first)) best = {time, name};
    return best.second;
}

OrderedJson row_of(const CopyReport& report) {
    OrderedJson row{{"cores", report.cores.cpus}, {"placement", report.cores.placement}};
    if (!report.problem.empty()) {
        row["problem"] = report.problem;
        return row;
    }
    row["line_ns"] = report.line_ns;
    row["class"] = message::copy_choice(report.distance).name;
    for (const CopyTimes& times : report.times) {
        const ChosenCopy chosen = chosen_for(report.distance, times);
        row["sizes"].push_back({{"bytes", times.bytes},
                                {"ordinary_us", time_or_null(times.ordinary)},
                                {"past_caches_us", time_or_null(times.past_caches)},
                                {"kernel_us", time_or_null(times.kernel)},
                                {"fastest", fastest(times)},
                                {"chosen", chosen.way},
                                {"reason", chosen.reason}});
    }
    return row;
}

std::string cell(const OrderedJson& time) { return time.is_null() ? "-" : fmt::format("{:.2f}", time.get<double>()); }

void print_pair(const OrderedJson& row) {
    fmt::print("\nCores {} and {}, {}", row["cores"][0].get<uint32_t>(), row["cores"][1].get<uint32_t>(),
               row["placement"].get<std::string>());
    if (row.contains("problem")) return fmt::print("\n  {}\n", row["problem"].get<std::string>());
    fmt::print("; half a round trip of a cache line {:.0f} ns; class {}\n", row["line_ns"].get<double>(),
               row["class"].get<std::string>());
    fmt::print("  {:>8} {:>10} {:>12} {:>10}   {:12} {:8} {}\n", "bytes", "ordinary", "past caches", "kernel", "fastest",
               "chosen", "because");
    for (const OrderedJson& size : row["sizes"])
        fmt::print("  {:>8} {:>10} {:>12} {:>10}   {:12} {:8} {}\n", size["bytes"].get<uint64_t>(), cell(size["ordinary_us"]),
                   cell(size["past_caches_us"]), cell(size["kernel_us"]), size["fastest"].get<std::string>(),
                   size["chosen"].get<std::string>(), size["reason"].get<std::string>());
}

}  // namespace

OrderedJson measure_all_copies() {
    OrderedJson out{{"rule", rule()}, {"pairs", OrderedJson::array()}};
    std::string problem;
    for (const CorePair& pair : core_pairs(problem)) out["pairs"].push_back(row_of(measure_copies(pair)));
    if (!problem.empty()) out["problem"] = problem;
    return out;
}

void print_copies(const OrderedJson& copies) {
    fmt::print("\nCopies between two cores, in us per message, and how a message is transferred whose sender waits\n");
    fmt::print("  {:6} {:>12} {:>10} {:>10}   {}\n", "class", "pieces up to", "both from", "fragments", "because");
    for (const OrderedJson& row : copies["rule"])
        fmt::print("  {:6} {:>12} {:>10} {:>10}   {}\n", row["class"].get<std::string>(),
                   row["pieces_up_to"].is_null() ? "any size" : row["pieces_up_to"].dump(), row["both_from"].dump(),
                   row["fragment"].dump(), row["why"].get<std::string>());
    if (copies.contains("problem")) fmt::print("  {}\n", copies["problem"].get<std::string>());
    for (const OrderedJson& row : copies["pairs"]) print_pair(row);
}

}  // namespace starling
