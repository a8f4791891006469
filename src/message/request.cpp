#include "message/request.h"

#include "progress/ready.h"

namespace starling::message {

void Request::tell_of_completion() {
    if (operations) {
        if (operations->completed) return operations->completed(*this);
        if (orphaned) return operations->dispose(*this);
    }
    if (open_in_group && --*open_in_group > 0) return;
    if (waiter) progress::schedule(waiter);
}

}  // namespace starling::message
