#include "launch/common/processor_placement.h"

#include <sched.h>

#include "control/control_protocol.h"
#include "launch/common/text.h"

namespace starling::launch {

namespace {

struct PartName {
    std::string_view name;
    ProcessorPart part;
};

// The first name of each part is the usual one.
constexpr PartName kParts[] = {
    {"hwthread", ProcessorPart::hwthread},  {"core", ProcessorPart::core},        {"l1cache", ProcessorPart::l1cache},
    {"l2cache", ProcessorPart::l2cache},    {"l3cache", ProcessorPart::l3cache},  {"numa", ProcessorPart::numa},
    {"package", ProcessorPart::package},    {"machine", ProcessorPart::machine},  {"hwt", ProcessorPart::hwthread},
    {"hwthreads", ProcessorPart::hwthread}, {"hw", ProcessorPart::hwthread},      {"pu", ProcessorPart::hwthread},
    {"thread", ProcessorPart::hwthread},    {"threads", ProcessorPart::hwthread}, {"cores", ProcessorPart::core},
    {"l1", ProcessorPart::l1cache},         {"l1dcache", ProcessorPart::l1cache}, {"l1ucache", ProcessorPart::l1cache},
    {"l2", ProcessorPart::l2cache},         {"l2dcache", ProcessorPart::l2cache}, {"l2ucache", ProcessorPart::l2cache},
    {"l3", ProcessorPart::l3cache},         {"l3dcache", ProcessorPart::l3cache}, {"l3ucache", ProcessorPart::l3cache},
    {"socket", ProcessorPart::package},     {"sockets", ProcessorPart::package},  {"board", ProcessorPart::machine},
    {"node", ProcessorPart::machine},       {"ldoms", ProcessorPart::numa},
};

std::string_view next_field(std::string_view& text, char separator) {
    const size_t end = text.find(separator);
    const std::string_view field = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return field;
}

bool parse_lists(std::string_view text, std::vector<std::vector<uint32_t>>& out) {
    while (!text.empty()) {
        if (!parse_cpus(next_field(text, '/'), out.emplace_back())) return false;
    }
    return !out.empty();
}

}  // namespace

ProcessorPart part_named(std::string_view name) {
    for (const PartName& known : kParts)
        if (known.name == name) return known.part;
    return ProcessorPart::unset;
}

std::string_view name_of(ProcessorPart part) {
    for (const PartName& known : kParts)
        if (known.part == part) return known.name;
    return "unset";
}

std::string ProcessorPlacement::text() const {
    std::string out;
    const auto add = [&](std::string_view key, const std::string& value) {
        out.append(out.empty() ? "" : ";").append(key).append("=").append(value);
    };
    if (bind != ProcessorPart::unset) add("bind", std::string(name_of(bind)));
    if (bind_count != 1) add("bind-count", std::to_string(bind_count));
    if (map != ProcessorPart::unset) add("map", std::string(name_of(map)));
    if (per_part) add("per-part", std::to_string(per_part));
    if (rank != ProcessorPart::unset) add("rank", std::string(name_of(rank)));
    if (rank_fills) add("rank-fills", "1");
    if (elements) add("elements", std::to_string(elements));
    if (counts_hwthreads) add("hwthreads", "1");
    if (!cpus.empty()) add("cpus", cpus_text(cpus));
    std::string all;
    for (const std::vector<uint32_t>& list : lists) all += (all.empty() ? "" : "/") + cpus_text(list);
    if (!all.empty()) add("lists", all);
    return out;
}

bool ProcessorPlacement::parse(std::string_view text, ProcessorPlacement& out) {
    const auto part = [](std::string_view word, ProcessorPart& to) { return (to = part_named(word)) != ProcessorPart::unset; };
    while (!text.empty()) {
        std::string_view value = next_field(text, ';');
        const std::string_view key = next_field(value, '=');
        uint32_t number = 0;
        const uint32_t most = key == "per-part" ? control::kMaxProcesses : CPU_SETSIZE;
        const bool counts = read_number(value, number) && number > 0 && number <= most;
        if (key == "bind"    ? !part(value, out.bind)
            : key == "map"   ? !part(value, out.map)
            : key == "rank"  ? !part(value, out.rank)
            : key == "cpus"  ? !parse_cpus(value, out.cpus)
            : key == "lists" ? !parse_lists(value, out.lists)
                             : !counts)
            return false;
        if (key == "bind-count") out.bind_count = number;
        if (key == "per-part") out.per_part = number;
        if (key == "rank-fills") out.rank_fills = true;
        if (key == "elements") out.elements = number;
        if (key == "hwthreads") out.counts_hwthreads = true;
    }
    return true;
}

bool parse_cpus(std::string_view list, std::vector<uint32_t>& out) {
    if (list.empty()) return false;
    while (!list.empty()) {
        std::string_view range = next_field(list, ',');
        uint32_t first = 0, last = 0;
        const std::string_view begin = next_field(range, '-');
        if (!read_number(begin, first) || (!range.empty() && !read_number(range, last))) return false;
        if (range.empty()) last = first;
        if (first > last || last >= CPU_SETSIZE || out.size() + (last - first) >= CPU_SETSIZE) return false;
        for (uint32_t cpu = first; cpu <= last; ++cpu) out.push_back(cpu);
    }
    return true;
}

std::string cpus_text(const std::vector<uint32_t>& cpus) {
    std::string out;
    for (size_t i = 0; i < cpus.size(); ++i) {
        size_t last = i;
        while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
        out += (out.empty() ? "" : ",") + std::to_string(cpus[i]) + (last > i ? "-" + std::to_string(cpus[last]) : "");
        i = last;
    }
    return out;
}

}  // namespace starling::launch
