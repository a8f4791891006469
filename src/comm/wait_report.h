// What a communicator is, for those who ask what a process waits for (progress/wait_report.h).
#pragma once

#include "base/wait_report_page.h"

namespace starling::comm {

/// The communicator with this context id, plane 0; `out` stays as it is if this process has none. TellerUpcalls::communicator.
void tell_communicator(uint64_t context, WaitReportPage::Communicator& out);

}  // namespace starling::comm
