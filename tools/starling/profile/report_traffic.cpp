// The parts of a report on traffic: sizes, paths, pairs, hosts, connections.
#include <algorithm>
#include <map>

#include "pairs.h"
#include "report_parts.h"
#include "what_if.h"

namespace starling::analysis {

namespace {

Data amount(const Amount& of) { return {{"messages", of.messages}, {"bytes", of.bytes}}; }

/// Returns the number of messages and accesses.
double talk(const Pair& pair) { return pair.all.messages + pair.in_memory.messages; }

void add_pairs(const Run& run, const ReportWish& wish, std::vector<Pair> pairs, Data& out) {
    std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& one, const Pair& other) { return talk(one) > talk(other); });
    const size_t count = pairs.size();
    double all = 0;
    for (const Pair& pair : pairs) all += talk(pair);
    if (pairs.size() > wish.rows) pairs.resize(wish.rows);
    Data rows = Data::array();
    for (const Pair& pair : pairs)
        rows.push_back({{"a", process_as_data(run, pair.a)},
                        {"b", process_as_data(run, pair.b)},
                        {"messages", talk(pair)},
                        {"bytes", pair.all.bytes + pair.in_memory.bytes},
                        {"connectable", pair.all.messages},
                        {"on_connections", pair.on_connection.messages}});
    out["rows"]["pairs"] = count;
    out["pair_messages"] = all;
    out["pairs"] = std::move(rows);
}

void add_between_hosts(const Run& run, const std::vector<Pair>& pairs, Data& out) {
    std::map<std::string, size_t> numbers;
    std::vector<std::string> names;
    for (const Job& job : run.jobs) {
        for (const std::string& host : job.hosts)
            if (numbers.try_emplace(host, names.size()).second) names.push_back(host);
    }
    std::map<std::pair<size_t, size_t>, double> bytes;
    for (const Pair& pair : pairs) {
        const auto one = numbers.find(run.host_of(pair.a)), other = numbers.find(run.host_of(pair.b));
        if (one == numbers.end() || other == numbers.end()) continue;
        bytes[std::minmax(one->second, other->second)] += pair.all.bytes + pair.in_memory.bytes;
    }
    Data rows = Data::array();
    for (const auto& [hosts, sum] : bytes)
        rows.push_back({{"a", names[hosts.first]}, {"b", names[hosts.second]}, {"bytes", sum}});
    out["between_hosts"] = std::move(rows);
}

}  // namespace

void add_sizes(const Run& run, Data& out) {
    std::map<uint64_t, Amount> sums;
    for (const Span& span : run.spans)
        for (const auto& [most, of_size] : span.by_size) sums[most] += of_size;
    Data rows = Data::array();
    for (const auto& [most, of_size] : sums)
        rows.push_back({{"most", most}, {"messages", of_size.messages}, {"bytes", of_size.bytes}});
    out["sizes"] = std::move(rows);
}

void add_traffic(const Run& run, const ReportWish& wish, Data& out) {
    std::array<Amount, kSizes> sizes;
    std::array<Amount, kAccesses> accesses;
    Amount all, on_connection, between_hosts, in_memory;
    for (const Span& span : run.spans) {
        for (size_t i = 0; i < kSizes; ++i) sizes[i] += span.sizes[i];
        for (size_t i = 0; i < kAccesses; ++i) accesses[i] += span.accesses[i];
        all += span.all();
        for (const Part& part : span.parts) {
            for (uint32_t i = part.first; i < part.first + part.count; ++i) {
                const Sent& sent = span.sent[i];
                on_connection += sent.on_connection;
                in_memory += sent.in_memory;
                if (run.host_of(part.process) != run.host_of(sent.to)) between_hosts += sent.all;
            }
        }
    }
    out["traffic"] = {{"small", amount(sizes[Size::small])},   {"pool", amount(sizes[Size::pool])},
                      {"large", amount(sizes[Size::large])},   {"puts", amount(accesses[Access::put])},
                      {"gets", amount(accesses[Access::get])}, {"updates", amount(accesses[Access::update])},
                      {"in_memory", amount(in_memory)}};
    out["traffic"]["on_connections"] = amount(on_connection);
    out["traffic"]["between_hosts"] = amount(between_hosts);
    out["traffic"]["connectable"] = amount(all);
    out["traffic"]["all"] = amount(all += in_memory);
    std::vector<Pair> pairs = pairs_of(run);
    add_between_hosts(run, pairs, out);
    add_pairs(run, wish, std::move(pairs), out);
}

void add_connections(const Run& run, Data& out) {
    const WhatIf what = what_if(run);
    out["connections"] = {{"recorded", what.recorded},
                          {"knee", what.knee()},
                          {"static", what.fixed},
                          {"on_demand", what.on_demand},
                          {"plan", what.planned}};
}

}  // namespace starling::analysis
