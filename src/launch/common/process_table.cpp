#include "launch/common/process_table.h"

#include <algorithm>

#include "base/wire.h"
#include "launch/common/order.h"

namespace starling::launch {

uint32_t ProcessTable::program(std::string_view path) {
    const auto found = std::find(programs.begin(), programs.end(), path);
    if (found != programs.end()) return static_cast<uint32_t>(found - programs.begin());
    programs.emplace_back(path);
    return static_cast<uint32_t>(programs.size() - 1);
}

std::string encode(const ProcessTable& table) {
    Writer out;
    write(out, table.hosts);
    write(out, table.programs);
    out.number(static_cast<uint32_t>(table.rows.size()));
    for (const ProcessTable::ProcessRow& row : table.rows) out.packed(row.host).packed(row.program).packed(row.pid);
    return out.take();
}

bool decode(std::string_view bytes, ProcessTable& out) {
    Reader in(bytes);
    read(in, out.hosts);
    read(in, out.programs);
    constexpr size_t kLeast = 3;  // minimum bytes of an encoded row
    out.rows.resize(in.count(kLeast));
    for (ProcessTable::ProcessRow& row : out.rows) {
        row.host = static_cast<uint32_t>(in.packed(UINT32_MAX));
        row.program = static_cast<uint32_t>(in.packed(UINT32_MAX));
        row.pid = static_cast<uint32_t>(in.packed(UINT32_MAX));
        if (row.host >= out.hosts.size() || row.program >= out.programs.size()) return false;
    }
    return in.done();
}

}  // namespace starling::launch
