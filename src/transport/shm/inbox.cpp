#include "transport/shm/inbox.h"

namespace starling::shm {

Cell* claim(Inbox& inbox, uint32_t pid) { return claim_cell(inbox, pid); }
void publish(Cell& cell) { publish_cell(cell); }

}  // namespace starling::shm
