// The processors of a job's processes within each host, as --bind-to, --map-by, --rank-by and --cpu-list ask. mpiexec passes the request to
// the launcher of each host in the variable STARLING_PROCESSORS, so it needs no field in a message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace starling::launch {

/// A part of a machine, from small to large. The order matters: each part consists of whole parts of the kinds before it.
enum class ProcessorPart : uint32_t { unset, hwthread, core, l1cache, l2cache, l3cache, numa, package, machine };

/// Parses a part's name in any of the spellings that Open MPI and MPICH use. Returns `unset` for other words.
ProcessorPart part_named(std::string_view name);
/// Returns the usual name of a part.
std::string_view name_of(ProcessorPart part);

inline constexpr char kProcessorsVariable[] = "STARLING_PROCESSORS";

struct ProcessorPlacement {
    ProcessorPart bind = ProcessorPart::unset;  ///< part to which each process is bound; unset: not bound by this request
    uint32_t bind_count = 1;                    ///< number of these parts for each process
    ProcessorPart map = ProcessorPart::unset;   ///< parts that take the processes in turn; unset: one processor after the other
    uint32_t per_part = 0;                      ///< processes on a mapped part before the next part takes some; 0: one in turn
    ProcessorPart rank =
        ProcessorPart::unset;       ///< parts among which the ranks are numbered in turn; unset: in order of mapping
    bool rank_fills = false;        ///< true: ranks are numbered part by part
    uint32_t elements = 0;          ///< processors for each process (PE=n); 0: not requested
    bool counts_hwthreads = false;  ///< true: a processor is a hardware thread, not a core
    std::vector<uint32_t> cpus{};   ///< the system's numbers of the usable hardware threads; empty: all
    std::vector<std::vector<uint32_t>> lists{};  ///< hardware threads of each process in turn; empty: the other members decide

    bool operator==(const ProcessorPlacement&) const = default;
    /// Returns whether a process needs more than the plain options, auto, core and none.
    bool is_set() const { return *this != ProcessorPlacement(); }
    std::string text() const;
    /// Parses the result of text(). Returns false if it is malformed.
    static bool parse(std::string_view text, ProcessorPlacement& out);
};

/// Parses a list of hardware threads such as "0-2,8". Returns false if it is empty or malformed.
bool parse_cpus(std::string_view list, std::vector<uint32_t>& out);
/// Returns a list such as "0-2,8".
std::string cpus_text(const std::vector<uint32_t>& cpus);

}  // namespace starling::launch
