#include "launch/common/process_table.h"

#include <algorithm>

#include "launch/common/order.h"

namespace starling::launch {

uint32_t ProcessTable::program(std::string_view path) {
    const auto found = std::find(programs.begin(), programs.end(), path);
    if (found != programs.end()) return static_cast<uint32_t>(found - programs.begin());
    programs.emplace_back(path);
    return static_cast<uint32_t>(programs.size() - 1);
}

void ProcessTable::encode(Writer& out) const {
    write(out, hosts);
    write(out, programs);
    out.number(static_cast<uint32_t>(rows.size()));
    for (const ProcessRow& row : rows) out.packed(row.host).packed(row.program).packed(row.pid);
}

bool ProcessTable::decode(Reader& in, ProcessTable& out) {
    read(in, out.hosts);
    read(in, out.programs);
    constexpr size_t kLeast = 3;  // minimum bytes of an encoded row
    out.rows.resize(in.count(kLeast));
    for (ProcessRow& row : out.rows) {
        row.host = static_cast<uint32_t>(in.packed(UINT32_MAX));
        row.program = static_cast<uint32_t>(in.packed(UINT32_MAX));
        row.pid = static_cast<uint32_t>(in.packed(UINT32_MAX));
        if (row.host >= out.hosts.size() || row.program >= out.programs.size()) return false;
    }
    return in.ok();
}

}  // namespace starling::launch
