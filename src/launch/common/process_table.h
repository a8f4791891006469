// A list of a job's processes, which a debugger reads from mpiexec.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace starling::launch {

struct ProcessTable {
    struct ProcessRow {
        uint32_t host = 0;     ///< index in `hosts`
        uint32_t program = 0;  ///< index in `programs`
        uint32_t pid = 0;      ///< process id on that host; 0: not known
    };
    std::vector<std::string> hosts;     ///< names of hosts
    std::vector<std::string> programs;  ///< paths of executable files, each once
    std::vector<ProcessRow> rows;       ///< the processes, in the order of their ranks

    bool empty() const { return rows.empty(); }
    /// Returns the index of `path` in `programs`, where it is added if it is new.
    uint32_t program(std::string_view path);
};

std::string encode(const ProcessTable& table);
/// Returns false if the bytes are not exactly one table, or an index is out of range; `out` is unspecified then.
bool decode(std::string_view bytes, ProcessTable& out);

}  // namespace starling::launch
