#include "launch/client/debugger_table.h"

#include <deque>
#include <utility>
#include <vector>

// The interface names the symbols. They are visible in a stripped program, too, and this file is compiled with full debug information, from
// which debuggers read the layout of MPIR_PROCDESC.
#define MPIR_SYMBOL extern "C" [[gnu::visibility("default")]]

struct MPIR_PROCDESC {
    char* host_name;
    char* executable_name;
    int pid;
};

enum { MPIR_NULL = 0, MPIR_DEBUG_SPAWNED = 1 };

MPIR_SYMBOL MPIR_PROCDESC* MPIR_proctable;
MPIR_SYMBOL int MPIR_proctable_size;
MPIR_SYMBOL volatile int MPIR_being_debugged;  // the debugger sets it to 1
MPIR_SYMBOL volatile int MPIR_debug_state;
MPIR_SYMBOL int MPIR_i_am_starter;       // its existence: this process is not a rank
MPIR_SYMBOL int MPIR_partial_attach_ok;  // its existence: ranks to which the debugger does not attach continue by themselves
MPIR_SYMBOL void MPIR_Breakpoint();

MPIR_PROCDESC* MPIR_proctable = nullptr;
int MPIR_proctable_size = 0;
volatile int MPIR_being_debugged = 0;
volatile int MPIR_debug_state = MPIR_NULL;
int MPIR_i_am_starter = 1;
int MPIR_partial_attach_ok = 1;

/// The debugger sets a breakpoint here.
[[gnu::noinline, gnu::noclone]] void MPIR_Breakpoint() { asm volatile("" ::: "memory"); }

namespace starling::launch {

namespace {

// The table's memory, which stays until mpiexec ends.
std::deque<ProcessTable> jobs;
std::vector<MPIR_PROCDESC> rows;
bool was_being_debugged = false;

}  // namespace

void add_to_debugger_table(ProcessTable processes) {
    ProcessTable& names = jobs.emplace_back(std::move(processes));
    for (const ProcessTable::ProcessRow& row : names.rows)
        rows.push_back({names.hosts[row.host].data(), names.programs[row.program].data(), static_cast<int>(row.pid)});
    MPIR_proctable = rows.data();
    MPIR_proctable_size = static_cast<int>(rows.size());
    MPIR_debug_state = MPIR_DEBUG_SPAWNED;
}

bool has_debugger_table() { return !rows.empty(); }

bool is_being_debugged() { return MPIR_being_debugged != 0; }

bool has_debugger_attached() {
    const bool debugged = is_being_debugged();
    return !std::exchange(was_being_debugged, debugged) && debugged;
}

void report_spawned() { MPIR_Breakpoint(); }

}  // namespace starling::launch
