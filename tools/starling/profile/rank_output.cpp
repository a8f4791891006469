#include "rank_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "show.h"
#include "table.h"

namespace starling::analysis {

namespace {

using OrderedJson = nlohmann::ordered_json;

bool is_late(const RankTable& table, const RankRow& row) {
    return std::binary_search(table.late.processes.begin(), table.late.processes.end(), row.process);
}

OrderedJson to_json(const std::string& name, const std::string& host, const RankRow& row, bool late) {
    return {{"rank", name},
            {"host", host},
            {"compute", row.compute},
            {"waited", row.waited},
            {"late", row.late},
            {"sent", row.sent.bytes},
            {"received", row.received.bytes},
            {"sent_messages", row.sent.messages},
            {"received_messages", row.received.messages},
            {"is_late", late}};
}

}  // namespace

std::string ranks_as_text(const Run& run, const RankTable& table, size_t most) {
    if (table.rows.size() < 2) return {};
    Table out("llrrrrrr", {"rank", "host", "compute", "waited", "", "late", "sent", "received"});
    const auto add = [&](const std::string& name, const std::string& host, const RankRow& row) {
        const bool of_one_rank = &row != &table.least && &row != &table.most;
        out.add({name, host, short_time(row.compute), short_time(row.waited),
                 of_one_rank ? percent(row.waited, row.seconds()) : std::string(), short_time(row.late),
                 short_bytes(row.sent.bytes), short_bytes(row.received.bytes)});
    };
    const std::vector<size_t> rows = notable_rows(table, most);
    for (const size_t i : rows) {
        const RankRow& row = table.rows[i];
        add(run.name_of(row.process) + (is_late(table, row) ? " <- late" : ""), cut(run.host_of(row.process), 20), row);
    }
    add("min", "", table.least);
    add("mean", "", table.mean);
    add("max", "", table.most);
    return fmt::format("\nRanks (late: time that a rank computed longer than the median; {} of {} ranks)\n", rows.size(),
                       table.rows.size()) +
           out.text();
}

OrderedJson ranks_as_json(const Run& run, const RankTable& table, size_t most) {
    OrderedJson rows = OrderedJson::array();
    for (const size_t i : notable_rows(table, most)) {
        const RankRow& row = table.rows[i];
        rows.push_back(to_json(run.name_of(row.process), run.host_of(row.process), row, is_late(table, row)));
    }
    return {{"rows", std::move(rows)},
            {"min", to_json("min", "", table.least, false)},
            {"mean", to_json("mean", "", table.mean, false)},
            {"max", to_json("max", "", table.most, false)}};
}

}  // namespace starling::analysis
