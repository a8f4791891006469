#include "rank_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "report_parts.h"
#include "show.h"
#include "table.h"

namespace starling::analysis {

namespace {

void add_amounts(const RankRow& row, Data& out) {
    out["compute"] = row.compute;
    out["waited"] = row.waited;
    out["late"] = row.late;
    out["sent"] = row.sent.bytes;
    out["received"] = row.received.bytes;
    out["sent_messages"] = row.sent.messages;
    out["received_messages"] = row.received.messages;
}

Data amounts(const RankRow& row) {
    Data out;
    add_amounts(row, out);
    return out;
}

}  // namespace

Data ranks_as_data(const Run& run, const RankTable& table, size_t most) {
    Data rows = Data::array();
    for (const size_t i : notable_rows(table, most)) {
        const RankRow& row = table.rows[i];
        Data out = process_as_data(run, row.process);
        out["is_late"] = table.late.contains(row.process);
        add_amounts(row, out);
        rows.push_back(std::move(out));
    }
    return {
        {"rows", std::move(rows)}, {"min", amounts(table.least)}, {"mean", amounts(table.mean)}, {"max", amounts(table.most)}};
}

std::string ranks_as_text(const Data& report) {
    const Data& ranks = report["ranks"];
    const size_t count = report["rows"]["ranks"].get<size_t>();
    if (count < 2) return {};
    Table out("llrrrrrr", {"rank", "host", "compute", "waited", "", "late", "sent", "received"});
    const auto add = [&](const std::string& name, const std::string& host, const Data& row, bool share) {
        const double compute = row["compute"], waited = row["waited"], late = row["late"];
        out.add({name, host, short_time(compute), short_time(waited), share ? percent(waited, compute + waited) : std::string(),
                 short_time(late), short_bytes(row["sent"]), short_bytes(row["received"])});
    };
    for (const Data& row : ranks["rows"])
        add(name_of(report, row) + (row["is_late"] == true ? " <- late" : ""), cut(row["host"].get<std::string>(), 20), row,
            true);
    add("min", "", ranks["min"], false);
    add("mean", "", ranks["mean"], true);
    add("max", "", ranks["max"], false);
    return fmt::format("\nRanks (late: time that a rank computed longer than the median; {} of {} ranks)\n",
                       ranks["rows"].size(), count) +
           out.text();
}

}  // namespace starling::analysis
