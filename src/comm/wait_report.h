// Describes communicators for wait reports (progress/wait_report.h).
#pragma once

#include "base/wait_report_page.h"

namespace starling::comm {

/// Fills `out` with the communicator that has this context id, plane 0; leaves it unchanged if this process has none. Used as
/// TellerUpcalls::communicator.
void describe_communicator(uint64_t context, WaitReportPage::CommunicatorEntry& out);

}  // namespace starling::comm
